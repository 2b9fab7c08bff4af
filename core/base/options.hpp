// Option tables: one table per component with the name, struct member, help text and range of every option. Parsing,
// defaults, --help, the JSON Schema, `manyworlds list` and "unknown key, did you mean" are all derived from it.
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

/// The description of one option that parsers, schemas and help pages use.
struct OptionInfo {
  enum class Kind { boolean, integer, real, text };
  std::string name;
  std::string help;
  Kind kind = Kind::integer;
  std::string unit;  // "", "bytes", "ps", "Gb/s", …; values in bytes and ps accept suffixes
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;  // the valid values of a text option; empty: any text
  /// True for a text option whose value is a list joined by '+' ("none" if empty): of `choices`, or of integers in
  /// range if there are no choices.
  bool is_list = false;
  OptionValue default_value;
};

struct Range {
  double minimum, maximum;
};

/// The option table of struct T. Rows are made by option(), choice(), flag_list() and integer_list() below; the
/// defaults are the member values of a default-constructed T.
template <class T>
class OptionTable {
 public:
  struct Row {
    OptionInfo info;
    std::function<void(T&, const OptionValue&)> set;
    std::function<OptionValue(const T&)> get;
  };

  OptionTable(std::initializer_list<Row> rows) : rows_(rows) {
    const T default_value{};
    for (Row& row : rows_) row.info.default_value = row.get(default_value);
  }

  void add(Row row) {
    row.info.default_value = row.get(T{});
    rows_.push_back(std::move(row));
  }

  std::vector<OptionInfo> infos() const {
    std::vector<OptionInfo> result;
    for (const Row& row : rows_) result.push_back(row.info);
    return result;
  }
  const std::vector<Row>& rows() const { return rows_; }

  /// Returns a T with the given values, and defaults for all others. Every value must name a row and have its type
  /// (readers of user input check that first, with file and line). Throws InternalError for an unknown name.
  T make(const OptionSet& values) const {
    T result{};
    for (const auto& [name, value] : values) {
      bool known = false;
      for (const Row& row : rows_)
        if (row.info.name == name) row.set(result, value), known = true;
      MANYWORLDS_CHECK(known, "no option '{}'", name);
    }
    return result;
  }
  /// Returns the values of all options of `from`.
  OptionSet read(const T& from) const {
    OptionSet values;
    for (const Row& row : rows_) values[row.info.name] = row.get(from);
    return values;
  }

 private:
  std::vector<Row> rows_;
};

/// Returns a row for one number, truth value or text; its kind follows from the type of the member.
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

/// Returns a row for an enumeration whose values count from 0 in the order of `names`.
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

/// Returns {"a", "b"} for "a+b", and an empty list for "none".
std::vector<std::string> split_list(const std::string& joined);
/// Returns "a+b" for {"a", "b"}, and "none" for an empty list.
std::string join_list(const std::vector<std::string>& names);
/// Returns the i-th of `names` for each set bit i of `bits`, joined by '+'.
std::string join_list(std::uint32_t bits, const std::vector<std::string>& names);

/// Returns a row for a set of flags: bit i of the member is set if the i-th of `names` is listed.
template <class T>
typename OptionTable<T>::Row flag_list(std::string name, std::uint32_t T::*member, std::vector<std::string> names,
                                       std::string help) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.choices = names;
  info.is_list = true;
  return {info,
          [member, names](T& to, const OptionValue& value) {
            to.*member = 0;
            for (const std::string& one : split_list(std::get<std::string>(value)))
              for (std::size_t i = 0; i < names.size(); ++i)
                if (names[i] == one) to.*member |= std::uint32_t{1} << i;
          },
          [member, names](const T& from) { return OptionValue(join_list(from.*member, names)); }};
}

/// Returns a row for a list of integers of any length.
template <class T>
typename OptionTable<T>::Row integer_list(std::string name, std::vector<std::int64_t> T::*member, std::string help,
                                          Range range) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = OptionInfo::Kind::text;
  info.minimum = range.minimum;
  info.maximum = range.maximum;
  info.is_list = true;
  return {info,
          [member](T& to, const OptionValue& value) {
            (to.*member).clear();
            for (const std::string& one : split_list(std::get<std::string>(value)))
              (to.*member).push_back(std::stoll(one));
          },
          [member](const T& from) {
            std::vector<std::string> result;
            for (const std::int64_t one : from.*member) result.push_back(std::to_string(one));
            return OptionValue(join_list(result));
          }};
}

}  // namespace manyworlds::core
