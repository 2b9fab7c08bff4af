// Pickles of Python (protocols 2 to 5; Lib/pickletools.py) that hold plain values alone: no opcode that names a class
// or calls anything is known, so that no file can have code run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::nccl_logs {

/// Returns whether bytes begin as a pickle of such a protocol does.
bool is_pickle(std::string_view bytes);

/// Returns the values of a pickle: dictionaries as objects, whose keys are texts or whole numbers; lists and tuples as
/// arrays; bytes as texts. Members of dictionaries that are named in `left_out` are null. `name` is its name in
/// messages. Throws core::InputError, with the byte at which it stands, for any other opcode, by its name; for a pickle
/// that is torn or has values beside its own; for texts that are no UTF-8, whole numbers beyond 64 bits, and nesting
/// deeper than 64 levels or more than 50,000,000 values when what is shared stands wherever it is referred to.
nlohmann::json parse_pickle(std::string_view bytes, const std::string& name,
                            const std::vector<std::string>& left_out = {});

}  // namespace manyworlds::experiments::nccl_logs
