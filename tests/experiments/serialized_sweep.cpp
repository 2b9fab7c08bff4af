// A resolved sweep is serialized and read back: the same bytes, everywhere and every time.
#include <catch2/catch.hpp>

#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

TEST_CASE("a serialized sweep is read back to one with the same bytes") {
  for (const char* name : {"first", "korthikanti-175b", "tiny"}) {
    const Sweep sweep = read_sweep(source_folder() + "/experiments/sweeps/" + name + ".yaml");
    const std::string serialized = serialize(sweep);
    const Sweep back = deserialize(serialized);
    CHECK(serialize(back) == serialized);
    REQUIRE(back.experiments.size() == sweep.experiments.size());
    for (std::size_t i = 0; i < sweep.experiments.size(); ++i) {
      CHECK(back.experiments[i].settings == sweep.experiments[i].settings);
      CHECK(back.experiments[i].id == i);
    }
    CHECK(back.text == sweep.text);
    CHECK(back.measured.has_value() == sweep.measured.has_value());
  }
}

TEST_CASE("cells without a value survive serialization") {
  const Sweep sweep = read(kSingle + "axes:\n  topology: [{rail_optimized: {oversubscription: 2}}, one_switch]\n");
  CHECK(serialize(deserialize(serialize(sweep))) == serialize(sweep));
}

TEST_CASE("what serialize did not write is refused") {
  const std::string serialized = serialize(read(kSingle));
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string("{}"),
        with(serialized, "manyworlds-sweep-2", "manyworlds-sweep-1"),
        with(serialized, "\"strategy.tp\":2", "\"strategy.tp\":0"),
        with(serialized, "\"strategy.tp\":2", "\"strategy.tp\":\"2\""), with(serialized, "\"strategy.tp\":2,", ""),
        with(serialized, "\"strategy.tp\":2", "\"strategy.tpp\":2"),
        with(serialized, "\"topology\":\"rail_optimized\"", "\"topology\":\"moebius\""),
        with(serialized, "\"transport\":\"dcqcn\"", "\"transport\":7")})
    CHECK_THROWS_AS(deserialize(bad), core::InputError);
}
