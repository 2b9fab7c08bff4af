#include "farm/serve/live_page.hpp"

#include "core/base/error.hpp"

namespace manyworlds::farm::serve {
namespace {

Bytes file(std::string_view name) {
  for (const io::PageAsset& asset : live_page_files())
    if (asset.name == name) return std::make_shared<const std::string>(asset.text);
  MANYWORLDS_CHECK(false, "no file '{}' of the live page", name);
}

Bytes shared(std::string_view name) {
  return std::make_shared<const std::string>(io::page_asset(name));
}

}  // namespace

Pages live_page() {
  constexpr const char* kScript = "text/javascript; charset=utf-8";
  constexpr const char* kStyle = "text/css; charset=utf-8";
  return {{"/", {"text/html; charset=utf-8", file("live.html")}},
          {"/live.js", {kScript, file("live.js")}},
          {"/live.css", {kStyle, file("live.css")}},
          {"/page.js", {kScript, shared("page.js")}},
          {"/page.css", {kStyle, shared("page.css")}},
          {"/chart.js", {kScript, shared("chart.js")}},
          {"/chart-licence.txt", {"text/plain; charset=utf-8", shared("chart-licence.txt")}}};
}

}  // namespace manyworlds::farm::serve
