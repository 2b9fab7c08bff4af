// The choices of section `documents`, and the packed samples that they give a model.
#include "experiments/key_contents/documents.hpp"

#include "experiments/import/document_lengths.hpp"

namespace manyworlds::experiments {
namespace {

using core::choice;
using core::option;
using core::workload::Packing;

constexpr double kLongest = 16'777'216, kMaxSeed = 9'007'199'254'740'992;

struct ConstantDocuments {
  std::int64_t length = 0;
  Packing packing = Packing::cut;
};
struct LognormalDocuments {
  double mean = 0, sigma = 1;
  Packing packing = Packing::cut;
  std::int64_t seed = 1;
};
struct MeasuredDocuments {
  std::string file;
  Packing packing = Packing::cut;
  std::int64_t seed = 1;
};

template <class T>
auto packing_option() {
  return choice("packing", &T::packing, {"cut", "first_fit"},
                "cut: documents follow each other and are cut where a sample ends, as Megatron-LM's GPT dataset does; "
                "first_fit: each goes whole into the first sample with room, and the rest is padding, as NeMo packs");
}
template <class T>
auto seed_option() {
  return option("seed", &T::seed, "seed that draws the order of the documents", {0, kMaxSeed});
}

const core::OptionTable<ConstantDocuments>& constant_options() {
  static const core::OptionTable<ConstantDocuments> table{
      option("length", &ConstantDocuments::length, "tokens of a document", {import::kMinMeanTokens, kLongest},
             "tokens"),
      packing_option<ConstantDocuments>(),
  };
  return table;
}

const core::OptionTable<LognormalDocuments>& lognormal_options() {
  static const core::OptionTable<LognormalDocuments> table{
      option("mean", &LognormalDocuments::mean, "mean tokens of a document", {import::kMinMeanTokens, kLongest},
             "tokens"),
      option("sigma", &LognormalDocuments::sigma, "standard deviation of the logarithm of these tokens", {0, 5}),
      packing_option<LognormalDocuments>(),
      seed_option<LognormalDocuments>(),
  };
  return table;
}

const core::OptionTable<MeasuredDocuments>& measured_options() {
  static const core::OptionTable<MeasuredDocuments> table{
      option("file", &MeasuredDocuments::file, "table of documents by their tokens (docs/formats.md)", {}, "file"),
      packing_option<MeasuredDocuments>(),
      seed_option<MeasuredDocuments>(),
  };
  return table;
}

std::string_view chosen_documents(const Settings& settings) {
  const auto found = settings.find("documents");
  return found == settings.end() ? "single" : std::string_view(std::get<std::string>(found->second));
}

Packing packing_of(const Settings& settings) {
  return settings.text("documents.packing") == "cut" ? Packing::cut : Packing::first_fit;
}

/// Returns documents of samples that are no sequences, for a rule to refuse.
std::shared_ptr<const core::workload::Documents> documents_of_one_token() {
  auto documents = std::make_shared<core::workload::Documents>();
  documents->samples = {{1}};
  documents->lengths = {{1, 1}};
  documents->sequence = 1;
  documents->key = core::sharing::KeyWriter("documents").finish();
  return documents;
}

}  // namespace

Section documents_section() {
  Section section;
  section.name = "documents";
  section.help = "the documents that samples are packed of, inside which attention works";
  section.choices = {{"single", "every sample is one document", {}},
                     {"constant", "documents of one length", constant_options().infos()},
                     {"lognormal", "lengths have a lognormal distribution", lognormal_options().infos()},
                     {"measured", "lengths as a table of a corpus counts them", measured_options().infos()}};
  return section;
}

std::shared_ptr<const core::workload::Documents> documents_of(const Settings& settings, const Inputs* inputs,
                                                              const core::workload::Model& model) {
  using namespace core::workload;
  const std::string_view kind = chosen_documents(settings);
  if (kind == "single") return nullptr;
  const auto integer = [&](const char* key) { return std::get<std::int64_t>(settings.at(key)); };
  std::vector<std::int64_t> lengths;
  if (kind == "constant") {
    const std::int64_t length = integer("documents.length");
    const std::int64_t count = documents_to_draw(static_cast<double>(length), model.sequence);
    lengths.assign(static_cast<std::size_t>(count), length);
  } else if (kind == "lognormal") {
    const double mean = std::get<double>(settings.at("documents.mean"));
    lengths = lognormal_lengths(mean, std::get<double>(settings.at("documents.sigma")), integer("documents.seed"),
                                documents_to_draw(mean, model.sequence));
  } else {
    if (inputs == nullptr) return nullptr;
    const std::string& path = settings.text("documents.file");
    const auto text = inputs->find(path);
    MANYWORLDS_CHECK(text != inputs->end(), "the sweep does not hold '{}'", path);
    const import::DocumentLengths table = import::parse_document_lengths(text->second, path);
    lengths = tabled_lengths(table, integer("documents.seed"), documents_to_draw(mean_length(table), model.sequence));
  }
  if (model.sequence == 1) return documents_of_one_token();
  return pack_documents(lengths, model.sequence, packing_of(settings));
}

}  // namespace manyworlds::experiments
