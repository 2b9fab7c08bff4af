// One option table per component: name, member, help, range. Parsing, defaults, --help, the JSON Schema,
// `manyworlds list` and "unknown key, did you mean" all come from it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::core {

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;
using OptionSet = std::map<std::string, OptionValue>;

/// What a reader, a schema or a help page needs to know of one option.
struct OptionInfo {
  enum class Kind { boolean, integer, real, text };
  std::string name;
  std::string help;
  Kind kind = Kind::integer;
  std::string unit;  // "", "bytes", "ps", "Gb/s", …; sizes and times accept suffixes
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  // of a text option; empty: any text
  /// Of a text option: several of `choices`, or whole numbers in range where there are none, joined by '+'; "none".
  bool several = false;
  OptionValue fallback;  // the default
};

struct Range {
  double minimum, maximum;
};

/// The table of struct T. Rows are made by option() and choice() below.
template <class T>
class OptionTable {
 public:
  struct Row {
    OptionInfo info;
    std::function<void(T&, const OptionValue&)> set;
    std::function<OptionValue(const T&)> get;
  };

  OptionTable(std::initializer_list<Row> rows) : rows_(rows) {
    const T fallback{};
    for (Row& row : rows_) row.info.fallback = row.get(fallback);
  }

  std::vector<OptionInfo> infos() const {
    std::vector<OptionInfo> all;
    for (const Row& row : rows_) all.push_back(row.info);
    return all;
  }
  const std::vector<Row>& rows() const { return rows_; }

  /// A T with the values given and defaults elsewhere. Every value must name a row and have its type
  /// (readers of user input check that first, with file and line).
  T make(const OptionSet& values) const {
    T made{};
    for (const auto& [name, value] : values) {
      bool known = false;
      for (const Row& row : rows_)
        if (row.info.name == name) row.set(made, value), known = true;
      MANYWORLDS_CHECK(known, "no option '{}'", name);
    }
    return made;
  }
  OptionSet read(const T& from) const {
    OptionSet values;
    for (const Row& row : rows_) values[row.info.name] = row.get(from);
    return values;
  }

 private:
  std::vector<Row> rows_;
};

template <class T, class Member>
typename OptionTable<T>::Row option(std::string name, Member T::*member, std::string help,
                                    Range range = {-std::numeric_limits<double>::infinity(),
                                                   std::numeric_limits<double>::infinity()},
                                    std::string unit = "") {
  using Stored =
      std::conditional_t<std::is_same_v<Member, bool>, bool,
                         std::conditional_t<std::is_integral_v<Member>, std::int64_t,
                                            std::conditional_t<std::is_floating_point_v<Member>, double, std::string>>>;
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.unit = std::move(unit);
  info.minimum = range.minimum;
  info.maximum = range.maximum;
  using Kind = OptionInfo::Kind;
  info.kind = std::is_same_v<Stored, bool>           ? Kind::boolean
              : std::is_same_v<Stored, std::int64_t> ? Kind::integer
              : std::is_same_v<Stored, double>       ? Kind::real
                                                     : Kind::text;
  return {info,
          [member](T& to, const OptionValue& value) { to.*member = static_cast<Member>(std::get<Stored>(value)); },
          [member](const T& from) { return OptionValue(static_cast<Stored>(from.*member)); }};
}

/// A text option over an enumeration whose values count from 0 in the order of `names`.
template <class T, class Enum>
typename OptionTable<T>::Row choice(std::string name, Enum T::*member, std::vector<std::string> names,
                                    std::string help) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.choices = names;
  return {info,
          [member, names](T& to, const OptionValue& value) {
            for (std::size_t i = 0; i < names.size(); ++i)
              if (names[i] == std::get<std::string>(value)) to.*member = static_cast<Enum>(i);
          },
          [member, names](const T& from) { return OptionValue(names.at(static_cast<std::size_t>(from.*member))); }};
}

/// "a+b" as {"a", "b"}; "none" as nothing.
std::vector<std::string> several_of(const std::string& joined);
/// The other way.
std::string join_several(const std::vector<std::string>& names);
/// The i-th of `names` for each bit i of `bits`.
std::string join_several(std::uint32_t bits, const std::vector<std::string>& names);

/// Any of `names`: bit i of the member stands for the i-th.
template <class T>
typename OptionTable<T>::Row any_of(std::string name, std::uint32_t T::*member, std::vector<std::string> names,
                                    std::string help) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.choices = names;
  info.several = true;
  return {info,
          [member, names](T& to, const OptionValue& value) {
            to.*member = 0;
            for (const std::string& one : several_of(std::get<std::string>(value)))
              for (std::size_t i = 0; i < names.size(); ++i)
                if (names[i] == one) to.*member |= std::uint32_t{1} << i;
          },
          [member, names](const T& from) { return OptionValue(join_several(from.*member, names)); }};
}

/// Whole numbers, as many as there are.
template <class T>
typename OptionTable<T>::Row numbers(std::string name, std::vector<std::int64_t> T::*member, std::string help,
                                     Range range) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.minimum = range.minimum;
  info.maximum = range.maximum;
  info.several = true;
  return {info,
          [member](T& to, const OptionValue& value) {
            (to.*member).clear();
            for (const std::string& one : several_of(std::get<std::string>(value)))
              (to.*member).push_back(std::stoll(one));
          },
          [member](const T& from) {
            std::vector<std::string> all;
            for (const std::int64_t one : from.*member) all.push_back(std::to_string(one));
            return OptionValue(join_several(all));
          }};
}

}  // namespace manyworlds::core
