// Tables of options: their names, values, and why those without effect have none.
#ifndef poplar_detail_options_hpp
#define poplar_detail_options_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/OptionFlags.hpp>

#include <string>

namespace poplar::detail {

// One option. `values` lists what it takes, with commas between: words as they are, or Integer, Decimal, Fraction (a
// Decimal from 0 to 1) or Text for any such value. `without_effect` says why the option changes nothing here, or why it
// takes one word only, and is null for one that acts.
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
