// Mutates record files so that checksums are no wall: bytes change at random, and half of the time the headers' and
// payloads' checksums are made to fit again, so that a reader has to believe what it should not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manyworlds::fuzz {

/// As LLVMFuzzerCustomMutator: changes `data` in place and returns its new size.
std::size_t mutate_record_file(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);

}  // namespace manyworlds::fuzz
