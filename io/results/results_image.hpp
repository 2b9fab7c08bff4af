// The HDF5 side of reading results: splits an image into the messages of io/results/results_stream.hpp. It must run
// where HDF5 may crash.
#pragma once

#include <functional>
#include <string_view>

namespace manyworlds::io {

/// Sends every part of the image, or a refusal that names the first invalid part. Only files of the form that
/// write_results() produces are accepted: hard links, fixed types, completely written datasets, and the two filters
/// that we use. Sizes are checked before memory is allocated.
void send_image(std::string_view image, const std::function<void(std::string_view)>& send);

}  // namespace manyworlds::io
