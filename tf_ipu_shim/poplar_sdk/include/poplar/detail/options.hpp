// Tables of options: their names, values, and reasons why some have no effect.
#ifndef poplar_detail_options_hpp
#define poplar_detail_options_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/OptionFlags.hpp>

#include <string>

namespace poplar::detail {

// One option. `values` lists the accepted values, separated by commas. Each is a word, or one of Integer, Decimal,
// Fraction (a Decimal from 0 to 1) and Text for any such value. `without_effect` says why the option has no effect
// here, or accepts one word only. It is null if the option has an effect.
struct Option {
  const char* name;
  const char* values;
  const char* without_effect;
};

// Throws invalid_option for a name that no row has, with the nearest name, and for a value that its row does not take.
// `where` is the function that got the options.
void checkOptions(const char* where, const OptionFlags& options, ArrayRef<Option> rows);

// The value of an option, or another one where it is not set.
std::string valueOf(const OptionFlags& options, const char* name, const char* otherwise);
inline bool isSet(const OptionFlags& options, const char* name) { return valueOf(options, name, "false") == "true"; }

}  // namespace poplar::detail

#endif
