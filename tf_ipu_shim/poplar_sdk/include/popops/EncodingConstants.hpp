// Defines the label of rows that losses ignore, and small constants added before a logarithm.
#ifndef popops_EncodingConstants_hpp
#define popops_EncodingConstants_hpp

// The label of a row that losses ignore.
#define MASKED_LABEL_CODE 0xFFFFFFFFU

// A small constant added to a probability before its logarithm is computed.
#define EPS_LOG_N_FLOAT (1.17549435e-38F)
#define EPS_LOG_N_HALF (0.000000059605F)

#endif
