// Documents as users give them: of one length, lognormal, or as a table of a corpus counts them.
#include <catch2/catch.hpp>

#include "core/workload/distributions/documents.hpp"
#include "experiments/import/document_lengths.hpp"
#include "tests/experiments/run_sweep.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::StartsWith;

namespace {

const std::string kPacked = with(with(kSingle, "sequence: 32}", "sequence: 1024}"), "global_batch: 8}",
                                 "global_batch: 8, stack: {attention: flash}}");

std::string refusal(const std::string& text) {
  try {
    import::parse_document_lengths(text, "d.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

struct TableFolder : TemporaryFolder {
  explicit TableFolder(const std::string& table) { put("d.csv", table); }
  std::string set() const { return "documents={measured: {file: " + (path / "d.csv").string() + "}}"; }
};

std::shared_ptr<const core::workload::Documents> documents_in(const Sweep& sweep, std::size_t experiment = 0) {
  return sweep.experiments.at(experiment).config().configuration.model.documents;
}

}  // namespace

TEST_CASE("a table of lengths counts documents, or has a row for each") {
  const import::DocumentLengths expected{{20, 2}, {900, 1}};
  CHECK(import::parse_document_lengths("tokens,documents\n900,1\n20,2\n7,0\n", "d.csv") == expected);
  CHECK(import::parse_document_lengths("tokens\n20\n900\n20\n", "d.csv") == expected);
}

TEST_CASE("a bad table of lengths is refused by file, line and what would be right") {
  CHECK_THAT(refusal(""), StartsWith("d.csv"));
  CHECK_THAT(refusal("documents\n1\n"), StartsWith("d.csv:1: ") && Contains("column 'tokens'"));
  CHECK_THAT(refusal("tokens,document\n1,1\n"), StartsWith("d.csv:1: ") && Contains("did you mean 'documents'"));
  CHECK_THAT(refusal("tokens\n"), StartsWith("d.csv:1: ") && Contains("no document"));
  CHECK_THAT(refusal("tokens,documents\n100,0\n"), Contains("no document"));
  CHECK_THAT(refusal("tokens\n100\n0\n"), StartsWith("d.csv:3: tokens must be from 1 to"));
  CHECK_THAT(refusal("tokens,documents\n100,-1\n"), StartsWith("d.csv:2: documents must be from 0 to"));
  CHECK_THAT(refusal("tokens,documents\n100,\n"), StartsWith("d.csv:2: documents is missing"));
  CHECK_THAT(refusal("tokens,documents\n100,1\n100,2\n"), StartsWith("d.csv:3: ") && Contains("in line 2 already"));
  CHECK_THAT(refusal("tokens\n1e3\n"), StartsWith("d.csv:2: "));
  CHECK_THAT(refusal("tokens\n3\n4\n"), Contains("3.5 tokens on average, and should have 16 at least"));
}

TEST_CASE("samples are single documents unless it is told, and an axis goes over their kinds and figures") {
  CHECK(documents_in(read(kPacked)) == nullptr);
  const Sweep sweep =
      read(kPacked +
           "axes:\n  documents: [single, {constant: {length: 300}}, {lognormal: {mean: 300, sigma: 0}}, "
           "{lognormal: {mean: 300, packing: first_fit}}, {constant: {length: 1024}}]\n");
  REQUIRE(sweep.experiments.size() == 5);
  CHECK(documents_in(sweep, 0) == nullptr);
  CHECK(documents_in(sweep, 1)->samples.front() == std::vector<std::int64_t>{300, 300, 300, 124});
  CHECK(documents_in(sweep, 1)->samples.at(1) == std::vector<std::int64_t>{176, 300, 300, 248});
  CHECK(documents_in(sweep, 2)->samples == documents_in(sweep, 1)->samples);
  CHECK(documents_in(sweep, 3)->padding > 0);
  CHECK(documents_in(sweep, 4) == nullptr);
  CHECK_THAT(error_of(kPacked, {"documents={lognorm: {}}"}), Contains("did you mean 'lognormal'"));
  CHECK_THAT(error_of(kPacked, {"documents={constant: {length: 15}}"}), Contains("documents.constant.length"));
  CHECK_THAT(error_of(kPacked, {"documents={lognormal: {mean: 300, sigma: 6}}"}),
             Contains("documents.lognormal.sigma"));
  CHECK_THAT(error_of(kPacked, {"documents={}"}),
             Contains("'documents' must be one name, or {name: {options}}, not an empty mapping"));
  CHECK_THAT(error_of(kPacked, {"documents=lognormal"}), Contains("'documents.mean' is missing"));
  CHECK_THAT(error_of(kPacked, {"documents=measured"}), Contains("'documents.file' is missing"));
}

TEST_CASE("a table of lengths goes with its sweep, serialized and read back") {
  const TableFolder folder("tokens,documents\n100,5\n700,2\n");
  const Sweep sweep = read(kPacked, {folder.set()});
  const auto documents = documents_in(sweep);
  REQUIRE(documents);
  CHECK(documents_in(deserialize(serialize(sweep)))->key == documents->key);
  CHECK_THAT(error_of(kPacked, {TableFolder("tokens\nx\n").set()}), Contains("d.csv:2: "));
}
