// The parts of our HTML pages, compiled in: style sheet and scripts (io/pages/) and the chart library with its licence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::io {

struct PageAsset {
  std::string name;  // file name
  std::string text;
};

/// The files of io/pages/ and the chart library, generated at build time.
const std::vector<PageAsset>& page_files();
const std::vector<PageAsset>& chart_library();

/// Returns the text of "page.css", "page.js", …; "chart.js" is the chart library.
std::string_view page_asset(std::string_view name);

}  // namespace manyworlds::io
