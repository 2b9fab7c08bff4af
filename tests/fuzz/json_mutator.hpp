// Mutates JSON at the level of its values, so that syntax is no wall: types are swapped, members dropped and repeated,
// numbers become extreme, lists grow and nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>

namespace manyworlds::fuzz {

/// One change to one value inside `document`.
void mutate_json(nlohmann::json& document, std::mt19937& random);

/// As LLVMFuzzerCustomMutator: changes `data` in place and returns its new size. What is no JSON begins as `fresh`; in
/// one of eight cases bytes change as in any text. `sealed` has the last word on what is written.
std::size_t mutate_json_text(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                             const std::string& fresh, std::string (*sealed)(std::string) = nullptr);

}  // namespace manyworlds::fuzz
