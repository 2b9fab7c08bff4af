// Maxima or means of windows.
#include <algorithm>

#include "core/workload/operators/part_input.hpp"
#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

enum class Pool : std::uint8_t { max, average };

struct Pooling {
  Pool of = Pool::max;
  std::int64_t channels = 0;  // 0: those of the stream
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
};

const OptionTable<Pooling>& pooling_options() {
  static const OptionTable<Pooling> table{
      choice("of", &Pooling::of, {"max", "average"}, "what is taken of a window"),
      option("channels", &Pooling::channels, "channels; 0: those of the stream", {0, 1'000'000}),
      option("kernel", &Pooling::kernel, "rows and columns of a window", {1, 1'024}),
      option("stride", &Pooling::stride, "the input has so many times the rows and columns", {1, 1'024}),
  };
  return table;
}

class PoolingPart final : public LayerPart, public ReshapesStream {
 public:
  explicit PoolingPart(const Pooling& options) : options_(options) {}

  BranchNames branch_names() const override { return kVisionNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model&) const override { return {0, 0}; }
  bool shares_context() const override { return false; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return undivided(); }
  PartFormulas formulas(const Model&) const override { return {"0", "", "0"}; }

  /// Forward the input is read where windows are, and the output written. Backward a maximum is found again: input,
  /// output and its gradient are read (cuDNN, cudnnPoolingBackward); a mean needs the gradient alone, and nothing is
  /// saved.
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t output = channels(on) * on.shapes.tokens, input = output * options_.stride * options_.stride;
    const std::int64_t read = std::min(input, output * options_.kernel * options_.kernel);
    const bool maximum = options_.of == Pool::max;
    Operator pooling;
    pooling.name = maximum ? "max_pooling" : "average_pooling";
    pooling.saved_bytes = maximum ? 2 * input : 0;
    pooling.forward.push_back(kernel(compute::memory_bound(pooling.name, 2 * (read + output))));
    pooling.backward.push_back(
        kernel(compute::memory_bound(pooling.name, 2 * (input + output + (maximum ? read + output : 0)))));
    operators.push_back(pooling);
  }

  /// The gradient of the input.
  std::int64_t working_bytes(const PartOnRank& on) const override { return input_bytes(on); }

  PartInput input(const PartOnRank& on) const override {
    return {input_bytes(on), options_.of == Pool::max ? input_bytes(on) : 0};
  }

 private:
  std::int64_t input_bytes(const PartOnRank& on) const {
    return 2 * channels(on) * on.shapes.tokens * options_.stride * options_.stride;
  }
  std::int64_t channels(const PartOnRank& on) const {
    return options_.channels > 0 ? options_.channels : on.shapes.hidden;
  }

  Pooling options_;
};

}  // namespace

PartType pooling_type() {
  return {"pooling",
          "maxima or means of windows",
          pooling_options().infos(),
          make_part<PoolingPart, pooling_options>,
          {},
          alone_on_stream()};
}

}  // namespace manyworlds::core::workload
