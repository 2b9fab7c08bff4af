// The HDF5 side of reading results: takes an image apart into the messages of io/results/results_stream.hpp. Whoever
// calls it does so where HDF5 may crash.
#pragma once

#include <functional>
#include <string_view>

namespace manyworlds::io {

/// Sends every part of the image, or a refusal that says what is not as a results file has it. Only what
/// write_results() makes is read: hard links, fixed types, datasets that are wholly there, and the two filters that we
/// use. Sizes are looked at before memory is taken.
void send_image(std::string_view image, const std::function<void(std::string_view)>& send);

}  // namespace manyworlds::io
