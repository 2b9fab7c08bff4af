// The live page: what a browser gets of the server besides the state of the run.
#pragma once

#include <vector>

#include "farm/serve/site.hpp"
#include "io/report/page_assets.hpp"

namespace manyworlds::farm::serve {

/// The files of farm/serve/pages/, generated at build time.
const std::vector<io::PageAsset>& live_page_files();

/// "/", and what it loads.
Pages live_page();

}  // namespace manyworlds::farm::serve
