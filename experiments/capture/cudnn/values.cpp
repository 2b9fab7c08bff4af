#include "experiments/capture/cudnn/values.hpp"

#include <iterator>

namespace manyworlds::experiments::capture::cudnn {
namespace {

struct Named {
  int number;
  const char* name;
};

template <std::size_t kCount>
std::string name_of(const Named (&names)[kCount], int number) {
  for (const Named& one : names)
    if (one.number == number) return one.name;
  return "number " + std::to_string(number);
}

constexpr Named kPointwise[] = {{0, "add"},
                                {1, "mul"},
                                {2, "min"},
                                {3, "max"},
                                {4, "sqrt"},
                                {5, "add_square"},
                                {6, "div"},
                                {7, "mod"},
                                {8, "pow"},
                                {9, "sub"},
                                {10, "abs"},
                                {11, "ceil"},
                                {12, "cos"},
                                {13, "exp"},
                                {14, "floor"},
                                {15, "log"},
                                {16, "neg"},
                                {17, "rsqrt"},
                                {18, "sin"},
                                {19, "tan"},
                                {20, "erf"},
                                {21, "identity"},
                                {22, "reciprocal"},
                                {23, "atan2"},
                                {100, "relu_fwd"},
                                {101, "tanh_fwd"},
                                {102, "sigmoid_fwd"},
                                {103, "elu_fwd"},
                                {104, "gelu_fwd"},
                                {105, "softplus_fwd"},
                                {106, "swish_fwd"},
                                {107, "gelu_approx_tanh_fwd"},
                                {200, "relu_bwd"},
                                {201, "tanh_bwd"},
                                {202, "sigmoid_bwd"},
                                {203, "elu_bwd"},
                                {204, "gelu_bwd"},
                                {205, "softplus_bwd"},
                                {206, "swish_bwd"},
                                {207, "gelu_approx_tanh_bwd"},
                                {300, "cmp_eq"},
                                {301, "cmp_neq"},
                                {302, "cmp_gt"},
                                {303, "cmp_ge"},
                                {304, "cmp_lt"},
                                {305, "cmp_le"},
                                {400, "logical_and"},
                                {401, "logical_or"},
                                {402, "logical_not"},
                                {501, "gen_index"},
                                {601, "binary_select"}};
constexpr Named kReductions[] = {{0, "add"}, {1, "mul"},   {2, "min"},   {3, "max"},         {4, "amax"},
                                 {5, "avg"}, {6, "norm1"}, {7, "norm2"}, {8, "mul_no_zeros"}};
constexpr Named kNorms[] = {{0, "layer_norm"}, {1, "instance_norm"}, {2, "batch_norm"},
                            {3, "group_norm"}, {4, "rms_norm"},      {5, "ada_layer_norm"}};
constexpr Named kResamples[] = {
    {0, "nearest"}, {1, "bilinear"}, {2, "avgpool_include_padding"}, {3, "maxpool"}, {4, "avgpool_exclude_padding"}};
constexpr Named kStatuses[] = {{kFine, "CUDNN_STATUS_SUCCESS"},
                               {kNotInitialized, "CUDNN_STATUS_NOT_INITIALIZED"},
                               {kBadParameter, "CUDNN_STATUS_BAD_PARAM"},
                               {kNullPointer, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
                               {kNotFinalized, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
                               {kSizeInsufficient, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"},
                               {kShapeMismatch, "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH"},
                               {kAttributeType, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"},
                               {kDescriptorType, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"},
                               {kNotSupported, "CUDNN_STATUS_NOT_SUPPORTED"}};

struct DataType {
  const char* name;
  int bits;
};
/// By cudnnDataType_t.
constexpr DataType kDataTypes[] = {
    {"fp32", 32}, {"fp64", 64},    {"fp16", 16},      {"int8", 8},        {"int32", 32}, {"int8x4", 32},
    {"uint8", 8}, {"uint8x4", 32}, {"int8x32", 256},  {"bf16", 16},       {"int64", 64}, {"boolean", 1},
    {"fp8", 8},   {"fp8_e5m2", 8}, {"fast_fp8", 32},  {"fp8_e8m0", 8},    {"fp4", 4},    {"int4", 4},
    {"uint4", 4}, {"uint32", 32},  {"complex64", 64}, {"complex128", 128}};

bool is_data_type(int type) {
  return type >= 0 && type < static_cast<int>(std::size(kDataTypes));
}

}  // namespace

bool is_given_as(ValueType attribute, int type) {
  const auto given = static_cast<ValueType>(type);
  switch (attribute) {
    case ValueType::real:
      return given == ValueType::float32 || given == ValueType::float64;
    case ValueType::int64_or_fraction:
      return given == ValueType::int64 || given == ValueType::fraction;
    case ValueType::int64_or_descriptor:
      return given == ValueType::int64 || given == ValueType::descriptor;
    default:
      return given == attribute;
  }
}

std::size_t element_bytes(int type) {
  switch (static_cast<ValueType>(type)) {
    case ValueType::boolean:
    case ValueType::character:
      return 1;
    case ValueType::handle:
    case ValueType::int64:
    case ValueType::float64:
    case ValueType::pointer:
    case ValueType::descriptor:
      return 8;
    case ValueType::fraction:
      return 16;
    default:
      return 4;
  }
}

std::string data_type_name(int type) {
  return is_data_type(type) ? kDataTypes[type].name : "type " + std::to_string(type);
}
int data_type_bits(int type) {
  return is_data_type(type) ? kDataTypes[type].bits : 0;
}

std::string pointwise_name(int mode) {
  return name_of(kPointwise, mode);
}
std::string reduction_name(int reduction) {
  return name_of(kReductions, reduction);
}
std::string norm_name(int mode) {
  return name_of(kNorms, mode);
}
std::string resample_name(int mode) {
  return name_of(kResamples, mode);
}

const char* status_name(Status status) {
  for (const Named& one : kStatuses)
    if (one.number == status) return one.name;
  return "CUDNN_UNKNOWN_STATUS";
}

}  // namespace manyworlds::experiments::capture::cudnn
