#include "io/report/page_assets.hpp"

#include "core/base/error.hpp"

namespace manyworlds::io {

std::string_view page_asset(std::string_view name) {
  if (name == "chart.js") return chart_library().front().text;
  for (const PageAsset& asset : page_files())
    if (asset.name == name) return asset.text;
  MANYWORLDS_CHECK(false, "no page asset '{}'", name);
}

}  // namespace manyworlds::io
