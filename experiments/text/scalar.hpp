// One scalar of a document into the value of an option: typed, with suffixes, inside the option's range.
#pragma once

#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::experiments::import {

/// The value of option `info`, called `key` in messages. Sizes, times and rates may carry a suffix (80GiB, 1G, 5ms,
/// 400Gbps) and are converted exactly to the option's unit. Throws InputError: wrong type, out of range, no number.
core::OptionValue read_value(const Node& node, const core::OptionInfo& info, const std::string& key);

/// A name or a sentence, of one line and at most 1,000 bytes; one of `choices` where there are any. Throws InputError.
std::string read_line(const Node& node, const std::string& key, std::vector<std::string> choices = {});

/// As read_value, for a value that is already a number or text (an axis range, a frozen sweep).
void check_range(const core::OptionValue& value, const core::OptionInfo& info, const std::string& key, const Node& at);

/// "an integer from 1 to 1024", "one of none, selective, full": what would be right.
std::string wanted(const core::OptionInfo& info);

}  // namespace manyworlds::experiments::import
