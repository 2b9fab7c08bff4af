// Parsing and formatting of options whose value is a list of names joined by '+'.
#include "core/base/options.hpp"

namespace manyworlds::core {

std::vector<std::string> split_list(const std::string& joined) {
  std::vector<std::string> names;
  if (joined == "none") return names;
  for (std::size_t begin = 0; begin <= joined.size();) {
    const std::size_t end = std::min(joined.find('+', begin), joined.size());
    names.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string join_list(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& one : names) joined += (joined.empty() ? "" : "+") + one;
  return joined.empty() ? "none" : joined;
}

std::string join_list(std::uint32_t bits, const std::vector<std::string>& names) {
  std::vector<std::string> some;
  for (std::size_t i = 0; i < names.size(); ++i)
    if ((bits >> i & 1) != 0) some.push_back(names[i]);
  return join_list(some);
}

}  // namespace manyworlds::core
