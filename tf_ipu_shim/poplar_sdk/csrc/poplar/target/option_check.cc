// Checks a function's options against its table, and suggests the nearest name for an unknown one.
#include <poplar/detail/options.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace poplar::detail {

namespace {

std::vector<std::string> wordsOf(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    words.push_back(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return words;
}

bool isInteger(const std::string& value) {
  char* end = nullptr;
  std::strtoll(value.c_str(), &end, 0);
  return !value.empty() && !std::isspace(static_cast<unsigned char>(value[0])) && *end == '\0';
}

bool isDecimal(const std::string& value) {
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  return !value.empty() && !std::isspace(static_cast<unsigned char>(value[0])) && *end == '\0';
}

// Whether a word stands for all values of a kind.
bool isKind(const std::string& word) {
  return word == "Text" || word == "Integer" || word == "Decimal" || word == "Fraction";
}

bool takes(const std::string& word, const std::string& value) {
  if (word == "Text") return true;
  if (word == "Integer") return isInteger(value);
  if (word == "Decimal") return isDecimal(value);
  if (word == "Fraction") {
    const double number = std::strtod(value.c_str(), nullptr);
    return isDecimal(value) && number >= 0 && number <= 1;
  }
  return word == value;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// How many letters to add, remove or change to make one text of the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

// Also finds a name with a missing or wrong group.
std::size_t distanceOfNames(const std::string& given, const std::string& known) {
  const std::string part = known.substr(known.rfind('.') + 1);
  return std::min(distance(given, known), 1 + distance(given.substr(given.rfind('.') + 1), part));
}

std::string advice(const std::string& name, ArrayRef<Option> rows) {
  if (rows.empty()) return "There are no options. Leave it out.";
  const Option* nearest = &rows[0];
  std::size_t least = name.size() + 1000;
  for (const Option& row : rows) {
    const std::size_t found = distanceOfNames(lower(name), lower(row.name));
    if (found < least) least = found, nearest = &row;
  }
  if (3 * least <= name.size() + 3)
    return "Did you mean '" + std::string(nearest->name) + "'? If not, leave the option out.";
  std::string names;
  const std::size_t shown = std::min<std::size_t>(rows.size(), 12);
  for (std::size_t i = 0; i < shown; ++i) names += (i ? ", " : "") + std::string(rows[i].name);
  return "Use one of these: " + names + (shown < rows.size() ? ", ..." : "") + ". Or leave the option out.";
}

}  // namespace

void checkOptions(const char* where, const OptionFlags& options, ArrayRef<Option> rows) {
  for (const auto& [name, value] : options) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Option& known) { return name == known.name; });
    if (row == rows.end())
      throw invalid_option("Unrecognised option '" + name + "' of " + where + ". " + advice(name, rows));
    const auto words = wordsOf(row->values);
    if (std::any_of(words.begin(), words.end(), [&](const std::string& word) { return takes(word, value); })) continue;
    // Values that the option refuses have the same reason.
    const bool one_value = words.size() == 1 && !isKind(words[0]) && row->without_effect;
    throw invalid_option(std::string(where) + ": option '" + name + "' has the value '" + value + "'; expected " +
                         (words.size() > 1 ? "one of: " : "") + row->values +
                         (one_value ? std::string(": ") + row->without_effect : "") + ". Pass such a value.");
  }
}

std::string valueOf(const OptionFlags& options, const char* name, const char* otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

}  // namespace poplar::detail
