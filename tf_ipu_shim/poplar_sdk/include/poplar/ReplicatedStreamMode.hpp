// Selects the data that each replica reads from a stream.
#ifndef poplar_ReplicatedStreamMode_hpp
#define poplar_ReplicatedStreamMode_hpp

namespace poplar {

enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

}  // namespace poplar

#endif
