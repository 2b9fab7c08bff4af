// The JSON that NCCL's Inspector plugin writes, an object per collective and rank: repeated ones become one row each,
// as in nccl-tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/nccl/nccl_tests.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::import {

/// Returns whether the text holds such an object.
bool is_nccl_inspector(std::string_view text);

/// Has `visit` see each object of a log, with its line. Throws InputError, with the line, for an object that is torn,
/// for what `visit` refuses, and for more than 2,000,000 objects.
void for_each_inspector_object(std::string_view text, const std::string& name,
                               const std::function<void(const JsonView& object, int line)>& visit);

/// Returns a row for each collective, size and communicator shape, with the median of its times, in the order of the
/// file; `name` is the file name in messages. Collectives that nccl-tests does not have are left out. Throws
/// InputError, with the line, for an object that is torn or lacks a figure, and for a file without any collective.
std::vector<NcclTestRow> parse_nccl_inspector(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
