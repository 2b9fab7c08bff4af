// Compares the capture's own declarations with the installed header of cuDNN, where there is one. It compiles or fails:
//   g++ -std=c++20 -I. -I/usr/local/cuda/include -fsyntax-only tests/capture/cudnn_layouts.cpp
#include <cudnn.h>

#include "experiments/capture/cudnn/descriptor.hpp"

namespace mine = manyworlds::experiments::capture::cudnn;
namespace attribute = mine::attribute;
namespace kind = mine::kind;
using mine::ValueType;

static_assert(CUDNN_MAJOR == 9, "the declarations are those of cuDNN 9");
static_assert(mine::kFine == CUDNN_STATUS_SUCCESS && mine::kNotInitialized == CUDNN_STATUS_NOT_INITIALIZED);
static_assert(mine::kBadParameter == CUDNN_STATUS_BAD_PARAM &&
              mine::kNullPointer == CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
static_assert(mine::kNotFinalized == CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
static_assert(mine::kSizeInsufficient == CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
static_assert(mine::kShapeMismatch == CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
static_assert(mine::kAttributeType == CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
static_assert(mine::kDescriptorType == CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
static_assert(mine::kNotSupported == CUDNN_STATUS_NOT_SUPPORTED && mine::kLargestRank == CUDNN_DIM_MAX);

#define SAME_TYPE(ours, theirs) static_assert(int(ValueType::ours) == CUDNN_TYPE_##theirs)
SAME_TYPE(handle, HANDLE);
SAME_TYPE(data_type, DATA_TYPE);
SAME_TYPE(boolean, BOOLEAN);
SAME_TYPE(int64, INT64);
SAME_TYPE(float32, FLOAT);
SAME_TYPE(float64, DOUBLE);
SAME_TYPE(pointer, VOID_PTR);
SAME_TYPE(convolution_mode, CONVOLUTION_MODE);
SAME_TYPE(heuristic_mode, HEUR_MODE);
SAME_TYPE(knob_type, KNOB_TYPE);
SAME_TYPE(nan_propagation, NAN_PROPOGATION);
SAME_TYPE(numerical_note, NUMERICAL_NOTE);
SAME_TYPE(pointwise_mode, POINTWISE_MODE);
SAME_TYPE(descriptor, BACKEND_DESCRIPTOR);
SAME_TYPE(genstats_mode, GENSTATS_MODE);
SAME_TYPE(bn_finalize_mode, BN_FINALIZE_STATS_MODE);
SAME_TYPE(reduction_operator, REDUCTION_OPERATOR_TYPE);
SAME_TYPE(behavior_note, BEHAVIOR_NOTE);
SAME_TYPE(reordering_mode, TENSOR_REORDERING_MODE);
SAME_TYPE(resample_mode, RESAMPLE_MODE);
SAME_TYPE(padding_mode, PADDING_MODE);
SAME_TYPE(int32, INT32);
SAME_TYPE(character, CHAR);
SAME_TYPE(fraction, FRACTION);
SAME_TYPE(norm_mode, NORM_MODE);
SAME_TYPE(norm_phase, NORM_FWD_PHASE);
SAME_TYPE(rng_distribution, RNG_DISTRIBUTION);
SAME_TYPE(moe_mode, MOE_GROUPED_MATMUL_MODE);

#define SAME_ATTRIBUTE(ours, theirs) static_assert(attribute::ours == CUDNN_ATTR_##theirs)
SAME_ATTRIBUTE(kPointwiseMode, POINTWISE_MODE);
SAME_ATTRIBUTE(kDilations, CONVOLUTION_DILATIONS);
SAME_ATTRIBUTE(kFilterStrides, CONVOLUTION_FILTER_STRIDES);
SAME_ATTRIBUTE(kPostPaddings, CONVOLUTION_POST_PADDINGS);
SAME_ATTRIBUTE(kPrePaddings, CONVOLUTION_PRE_PADDINGS);
SAME_ATTRIBUTE(kSpatialDimensions, CONVOLUTION_SPATIAL_DIMS);
SAME_ATTRIBUTE(kHeuristicGraph, ENGINEHEUR_OPERATION_GRAPH);
SAME_ATTRIBUTE(kHeuristicResults, ENGINEHEUR_RESULTS);
SAME_ATTRIBUTE(kConfigEngine, ENGINECFG_ENGINE);
SAME_ATTRIBUTE(kConfigWorkspace, ENGINECFG_WORKSPACE_SIZE);
SAME_ATTRIBUTE(kConfigSharedMemory, ENGINECFG_SHARED_MEMORY_USED);
SAME_ATTRIBUTE(kPlanConfig, EXECUTION_PLAN_ENGINE_CONFIG);
SAME_ATTRIBUTE(kPlanWorkspace, EXECUTION_PLAN_WORKSPACE_SIZE);
SAME_ATTRIBUTE(kForwardConvolution, OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME_ATTRIBUTE(kDataConvolution, OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME_ATTRIBUTE(kFilterConvolution, OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME_ATTRIBUTE(kPointwise, OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME_ATTRIBUTE(kMatmul, OPERATION_MATMUL_DESC);
SAME_ATTRIBUTE(kRng, OPERATION_RNG_DESC);
SAME_ATTRIBUTE(kGraphOperations, OPERATIONGRAPH_OPS);
SAME_ATTRIBUTE(kGraphEngineCount, OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
SAME_ATTRIBUTE(kTensorType, TENSOR_DATA_TYPE);
SAME_ATTRIBUTE(kTensorDimensions, TENSOR_DIMENSIONS);
SAME_ATTRIBUTE(kTensorStrides, TENSOR_STRIDES);
SAME_ATTRIBUTE(kTensorId, TENSOR_UNIQUE_ID);
SAME_ATTRIBUTE(kTensorVectorCount, TENSOR_VECTOR_COUNT);
SAME_ATTRIBUTE(kTensorVectorAxis, TENSOR_VECTORIZED_DIMENSION);
SAME_ATTRIBUTE(kTensorIsVirtual, TENSOR_IS_VIRTUAL);
SAME_ATTRIBUTE(kTensorIsByValue, TENSOR_IS_BY_VALUE);
SAME_ATTRIBUTE(kTensorRaggedOffset, TENSOR_RAGGED_OFFSET_DESC);
SAME_ATTRIBUTE(kPackIds, VARIANT_PACK_UNIQUE_IDS);
SAME_ATTRIBUTE(kPackPointers, VARIANT_PACK_DATA_POINTERS);
SAME_ATTRIBUTE(kPackWorkspace, VARIANT_PACK_WORKSPACE);
SAME_ATTRIBUTE(kEngineGraph, ENGINE_OPERATION_GRAPH);
SAME_ATTRIBUTE(kEngineIndex, ENGINE_GLOBAL_INDEX);
SAME_ATTRIBUTE(kReductionOperator, REDUCTION_OPERATOR);
SAME_ATTRIBUTE(kReduction, OPERATION_REDUCTION_DESC);
SAME_ATTRIBUTE(kResampleMode, RESAMPLE_MODE);
SAME_ATTRIBUTE(kResampleForward, OPERATION_RESAMPLE_FWD_DESC);
SAME_ATTRIBUTE(kResampleBackward, OPERATION_RESAMPLE_BWD_DESC);
SAME_ATTRIBUTE(kNormForwardMode, OPERATION_NORM_FWD_MODE);
SAME_ATTRIBUTE(kNormBackwardMode, OPERATION_NORM_BWD_MODE);

static_assert(kind::kEngine == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
              kind::kEngineConfig == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
static_assert(kind::kHeuristics == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
static_assert(kind::kExecutionPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
static_assert(kind::kOperationGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
static_assert(kind::kVariantPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
              kind::kTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR);

static_assert(CUDNN_DATA_FLOAT == 0 && CUDNN_DATA_HALF == 2 && CUDNN_DATA_INT8 == 3 && CUDNN_DATA_BFLOAT16 == 9);
static_assert(CUDNN_DATA_BOOLEAN == 11 && CUDNN_DATA_FP8_E4M3 == 12 && CUDNN_DATA_FP4_E2M1 == 16);
static_assert(CUDNN_DATA_UINT32 == 19 && CUDNN_DATA_COMPLEX_FP64 == 21);
static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == 48 && sizeof(cudnnConvolutionBwdDataAlgoPerf_t) == 48);
static_assert(sizeof(cudnnFraction_t) == 16 && sizeof(bool) == 1);
