// Parses one scalar of a document as the value of an option: typed, with unit suffixes, inside the option's range.
#pragma once

#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::import {

/// Returns the value of option `info`; `key` is its name in messages. Sizes, times and rates may have a suffix (80GiB,
/// 1G, 5ms, 400Gbps) and are converted exactly to the option's unit. Throws InputError for a wrong type, a value out of
/// range, and text that is not a number.
core::OptionValue read_value(const Node& node, const core::OptionInfo& info, const std::string& key);

/// Returns a line of 1 to 1,000 bytes; if `choices` is not empty, it must be one of them. Throws InputError.
std::string read_line(const Node& node, const std::string& key, std::vector<std::string> choices = {});

/// Checks a value that is already a number or text (an axis range, a serialized sweep) as read_value() does.
void check_range(const core::OptionValue& value, const core::OptionInfo& info, const std::string& key, const Node& at);

/// Describes the values that an option accepts: "an integer from 1 to 1024", "one of none, selective, full".
std::string expected_text(const core::OptionInfo& info);

/// Returns a value as results and messages show it: true, 8, 0.5, or the text itself.
std::string value_text(const core::OptionValue& value);

}  // namespace manyworlds::experiments::import
