// What free text in a table of measurements means: words.csv has names of GPUs, models, schedules, …, sources.csv what
// is known of a source's software and cluster, and what is assumed of sources that it does not name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::measured {

/// The letters and digits of `text`, letters small: how texts are compared.
std::string squeezed(std::string_view text);

/// What the software and the machines of a source were, unless a row says.
struct Origin {
  std::vector<std::string> contains;   // words of what is said of the source, all of them; none: any source
  std::int64_t from_year = 0;          // only rows of that year or later
  std::string family;                  // with {gpu}, {kind} and {cut} to be filled in; empty: the source's own name
  std::string stack;                   // in the catalog
  std::int64_t zero = 0;               // ZeRO stage where dp > 1
  bool sequence_parallel = false;      // where tp > 1
  bool overlap_grad_reduce = true;     // gradients are reduced beside the backward pass
  std::string sharded_by;              // how ZeRO 3 gathers and scatters: an algorithm; empty: as the library does
  bool experts_over_replicas = false;  // experts are spread over all replicas where a row prints no EP
  std::string recompute;               // where rows do not say; empty: the first that fits
  std::string cluster;                 // in the catalog, whose NICs these were; empty: one by the GPU
  bool named() const { return !family.empty(); }
};

class Words {
 public:
  Words();

  /// What `text` means in `column` (gpu, dtype, zero_stage, schedule, recompute, model, style), by the first row whose
  /// word it contains; nothing where there is none.
  std::optional<std::string> meaning(std::string_view column, std::string_view text) const;
  /// The first origin whose words are all in `text`: a source, its notes and its GPU. The last fits every source.
  const Origin& origin(const std::string& text, std::int64_t year) const;

 private:
  struct Word {
    std::string column, contains, value;
  };
  std::vector<Word> words_;
  std::vector<Origin> origins_;
};

}  // namespace manyworlds::experiments::measured
