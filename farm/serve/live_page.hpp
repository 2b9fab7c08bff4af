// The files of the live page that the server sends to a browser, without the state of the run.
#pragma once

#include <vector>

#include "farm/serve/http_handler.hpp"
#include "io/report/page_assets.hpp"

namespace manyworlds::farm::serve {

/// Returns the files of farm/serve/pages/. Generated at build time.
const std::vector<io::PageAsset>& live_page_files();

/// Returns the page "/" and the files that it loads, by path.
Pages live_page();

}  // namespace manyworlds::farm::serve
