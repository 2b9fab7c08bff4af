#include "experiments/capture/libraries/matrix_product.hpp"

#include "experiments/capture/libraries/library_types.hpp"

namespace manyworlds::experiments::capture {

void describe(Line& line, const MatrixProduct& product) {
  const auto type = [](int number) { return quoted(cublas::data_type(number)); };
  line.number("m", product.m).number("n", product.n).number("k", product.k).number("batch", product.batch);
  line.json("dtypes", "[" + type(product.type_a) + "," + type(product.type_b) + "," + type(product.type_d) + "]");
  line.json("transposed",
            std::string(product.transposes_a ? "[true," : "[false,") + (product.transposes_b ? "true]" : "false]"));
  line.json("a", place(product.a)).json("b", place(product.b)).json("c", place(product.c)).json("d", place(product.d));
}

}  // namespace manyworlds::experiments::capture
