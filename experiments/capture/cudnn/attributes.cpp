// What the descriptors of cuDNN's backend have as attributes. After the cuDNN documentation, "Backend API", with the
// numbers of its header (cudnn_graph.h of 9.19), which tests/end_to_end/capture_cudnn.py compares where it is
// installed.
#include "experiments/capture/cudnn/attributes.hpp"

#include <algorithm>

namespace manyworlds::experiments::capture::cudnn {
namespace {

constexpr Attribute kPointwiseAttributes[] = {
    {0, "POINTWISE_MODE", ValueType::pointwise_mode, true},
    {1, "POINTWISE_MATH_PREC", ValueType::data_type},
    {2, "POINTWISE_NAN_PROPAGATION", ValueType::nan_propagation},
    {3, "POINTWISE_RELU_LOWER_CLIP", ValueType::real},
    {4, "POINTWISE_RELU_UPPER_CLIP", ValueType::real},
    {5, "POINTWISE_RELU_LOWER_CLIP_SLOPE", ValueType::real},
    {6, "POINTWISE_ELU_ALPHA", ValueType::real},
    {7, "POINTWISE_SOFTPLUS_BETA", ValueType::real},
    {8, "POINTWISE_SWISH_BETA", ValueType::real},
    {9, "POINTWISE_AXIS", ValueType::int64},
};
constexpr Attribute kConvolutionAttributes[] = {
    {100, "CONVOLUTION_COMP_TYPE", ValueType::data_type, true},
    {101, "CONVOLUTION_CONV_MODE", ValueType::convolution_mode, true},
    {102, "CONVOLUTION_DILATIONS", ValueType::int64, true},
    {103, "CONVOLUTION_FILTER_STRIDES", ValueType::int64, true},
    {104, "CONVOLUTION_POST_PADDINGS", ValueType::int64, true},
    {105, "CONVOLUTION_PRE_PADDINGS", ValueType::int64, true},
    {106, "CONVOLUTION_SPATIAL_DIMS", ValueType::int64, true},
};
constexpr Attribute kEngineAttributes[] = {
    {1300, "ENGINE_OPERATION_GRAPH", ValueType::descriptor, true},
    {1301, "ENGINE_GLOBAL_INDEX", ValueType::int64, true},
    {1302, "ENGINE_KNOB_INFO", ValueType::descriptor},
    {1303, "ENGINE_NUMERICAL_NOTE", ValueType::numerical_note},
    {1304, "ENGINE_LAYOUT_INFO", ValueType::descriptor},
    {1305, "ENGINE_BEHAVIOR_NOTE", ValueType::behavior_note},
    {1306, "ENGINE_SM_COUNT_TARGET", ValueType::int32},
    {1307, "ENGINE_DEVICEPROP", ValueType::descriptor},
    {1308, "ENGINE_DISABLE_CLUSTER_COOPERATIVE", ValueType::boolean},
};
constexpr Attribute kEnginecfgAttributes[] = {
    {300, "ENGINECFG_ENGINE", ValueType::descriptor, true},
    {301, "ENGINECFG_INTERMEDIATE_INFO", ValueType::descriptor},
    {302, "ENGINECFG_KNOB_CHOICES", ValueType::descriptor},
    {303, "ENGINECFG_WORKSPACE_SIZE", ValueType::int64},
    {304, "ENGINECFG_SHARED_MEMORY_USED", ValueType::int32},
};
constexpr Attribute kEngineheurAttributes[] = {
    {200, "ENGINEHEUR_MODE", ValueType::heuristic_mode, true},
    {201, "ENGINEHEUR_OPERATION_GRAPH", ValueType::descriptor, true},
    {202, "ENGINEHEUR_RESULTS", ValueType::descriptor},
    {203, "ENGINEHEUR_SM_COUNT_TARGET", ValueType::int32},
    {204, "ENGINEHEUR_DEVICEPROP", ValueType::descriptor},
};
constexpr Attribute kExecutionPlanAttributes[] = {
    {400, "EXECUTION_PLAN_HANDLE", ValueType::handle},
    {401, "EXECUTION_PLAN_ENGINE_CONFIG", ValueType::descriptor, true},
    {402, "EXECUTION_PLAN_WORKSPACE_SIZE", ValueType::int64},
    {403, "EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS", ValueType::int64},
    {404, "EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS", ValueType::int64},
    {406, "EXECUTION_PLAN_KERNEL_CACHE", ValueType::descriptor},
    {407, "EXECUTION_PLAN_DEVICEPROP", ValueType::descriptor},
};
constexpr Attribute kKnobChoiceAttributes[] = {
    {600, "KNOB_CHOICE_KNOB_TYPE", ValueType::knob_type, true},
    {601, "KNOB_CHOICE_KNOB_VALUE", ValueType::int64, true},
};
constexpr Attribute kKnobInfoAttributes[] = {
    {1200, "KNOB_INFO_TYPE", ValueType::knob_type},
    {1201, "KNOB_INFO_MAXIMUM_VALUE", ValueType::int64},
    {1202, "KNOB_INFO_MINIMUM_VALUE", ValueType::int64},
    {1203, "KNOB_INFO_STRIDE", ValueType::int64},
};
constexpr Attribute kOperationConvolutionForwardAttributes[] = {
    {700, "OPERATION_CONVOLUTION_FORWARD_ALPHA", ValueType::real},
    {701, "OPERATION_CONVOLUTION_FORWARD_BETA", ValueType::real},
    {702, "OPERATION_CONVOLUTION_FORWARD_CONV_DESC", ValueType::descriptor, true},
    {704, "OPERATION_CONVOLUTION_FORWARD_X", ValueType::descriptor, true, Role::input, "x"},
    {703, "OPERATION_CONVOLUTION_FORWARD_W", ValueType::descriptor, true, Role::input, "w"},
    {705, "OPERATION_CONVOLUTION_FORWARD_Y", ValueType::descriptor, true, Role::output, "y"},
};
constexpr Attribute kOperationConvolutionBackwardFilterAttributes[] = {
    {712, "OPERATION_CONVOLUTION_BWD_FILTER_ALPHA", ValueType::real},
    {713, "OPERATION_CONVOLUTION_BWD_FILTER_BETA", ValueType::real},
    {714, "OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC", ValueType::descriptor, true},
    {716, "OPERATION_CONVOLUTION_BWD_FILTER_X", ValueType::descriptor, true, Role::input, "x"},
    {717, "OPERATION_CONVOLUTION_BWD_FILTER_DY", ValueType::descriptor, true, Role::input, "dy"},
    {715, "OPERATION_CONVOLUTION_BWD_FILTER_DW", ValueType::descriptor, true, Role::output, "dw"},
};
constexpr Attribute kOperationConvolutionBackwardDataAttributes[] = {
    {706, "OPERATION_CONVOLUTION_BWD_DATA_ALPHA", ValueType::real},
    {707, "OPERATION_CONVOLUTION_BWD_DATA_BETA", ValueType::real},
    {708, "OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC", ValueType::descriptor, true},
    {709, "OPERATION_CONVOLUTION_BWD_DATA_W", ValueType::descriptor, true, Role::input, "w"},
    {711, "OPERATION_CONVOLUTION_BWD_DATA_DY", ValueType::descriptor, true, Role::input, "dy"},
    {710, "OPERATION_CONVOLUTION_BWD_DATA_DX", ValueType::descriptor, true, Role::output, "dx"},
};
constexpr Attribute kOperationPointwiseAttributes[] = {
    {750, "OPERATION_POINTWISE_PW_DESCRIPTOR", ValueType::descriptor, true},
    {751, "OPERATION_POINTWISE_XDESC", ValueType::descriptor, false, Role::input, "x"},
    {752, "OPERATION_POINTWISE_BDESC", ValueType::descriptor, false, Role::input, "b"},
    {758, "OPERATION_POINTWISE_TDESC", ValueType::descriptor, false, Role::input, "t"},
    {757, "OPERATION_POINTWISE_DYDESC", ValueType::descriptor, false, Role::input, "dy"},
    {753, "OPERATION_POINTWISE_YDESC", ValueType::descriptor, false, Role::output, "y"},
    {756, "OPERATION_POINTWISE_DXDESC", ValueType::descriptor, false, Role::output, "dx"},
    {754, "OPERATION_POINTWISE_ALPHA1", ValueType::real},
    {755, "OPERATION_POINTWISE_ALPHA2", ValueType::real},
};
constexpr Attribute kOperationGenStatsAttributes[] = {
    {770, "OPERATION_GENSTATS_MODE", ValueType::genstats_mode},
    {771, "OPERATION_GENSTATS_MATH_PREC", ValueType::data_type},
    {772, "OPERATION_GENSTATS_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {773, "OPERATION_GENSTATS_SUMDESC", ValueType::descriptor, true, Role::output, "sum"},
    {774, "OPERATION_GENSTATS_SQSUMDESC", ValueType::descriptor, true, Role::output, "square_sum"},
};
constexpr Attribute kOperationgraphAttributes[] = {
    {800, "OPERATIONGRAPH_HANDLE", ValueType::handle},
    {801, "OPERATIONGRAPH_OPS", ValueType::descriptor, true},
    {802, "OPERATIONGRAPH_ENGINE_GLOBAL_COUNT", ValueType::int64},
    {803, "OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED", ValueType::boolean},
    {804, "OPERATIONGRAPH_IS_SAME_TOPOLOGY", ValueType::boolean},
};
constexpr Attribute kVariantPackAttributes[] = {
    {1000, "VARIANT_PACK_UNIQUE_IDS", ValueType::int64, true},
    {1001, "VARIANT_PACK_DATA_POINTERS", ValueType::pointer, true},
    {1002, "VARIANT_PACK_INTERMEDIATES", ValueType::pointer},
    {1003, "VARIANT_PACK_WORKSPACE", ValueType::pointer},
};
constexpr Attribute kTensorAttributes[] = {
    {900, "TENSOR_BYTE_ALIGNMENT", ValueType::int64},
    {901, "TENSOR_DATA_TYPE", ValueType::data_type, true},
    {902, "TENSOR_DIMENSIONS", ValueType::int64, true},
    {903, "TENSOR_STRIDES", ValueType::int64, true},
    {904, "TENSOR_VECTOR_COUNT", ValueType::int64},
    {905, "TENSOR_VECTORIZED_DIMENSION", ValueType::int64},
    {906, "TENSOR_UNIQUE_ID", ValueType::int64, true},
    {907, "TENSOR_IS_VIRTUAL", ValueType::boolean},
    {908, "TENSOR_IS_BY_VALUE", ValueType::boolean},
    {909, "TENSOR_REORDERING_MODE", ValueType::reordering_mode},
    {913, "TENSOR_RAGGED_OFFSET_DESC", ValueType::descriptor},
};
constexpr Attribute kMatmulAttributes[] = {
    {1500, "MATMUL_COMP_TYPE", ValueType::data_type, true},
    {1503, "MATMUL_PADDING_VALUE", ValueType::real},
};
constexpr Attribute kOperationMatmulAttributes[] = {
    {1520, "OPERATION_MATMUL_ADESC", ValueType::descriptor, true, Role::input, "a"},
    {1521, "OPERATION_MATMUL_BDESC", ValueType::descriptor, true, Role::input, "b"},
    {1522, "OPERATION_MATMUL_CDESC", ValueType::descriptor, true, Role::output, "c"},
    {1523, "OPERATION_MATMUL_DESC", ValueType::descriptor, true},
    {1524, "OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT", ValueType::int64},
    {1525, "OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC", ValueType::descriptor, false, Role::input, "m_override"},
    {1526, "OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC", ValueType::descriptor, false, Role::input, "n_override"},
    {1527, "OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC", ValueType::descriptor, false, Role::input, "k_override"},
};
constexpr Attribute kOperationBnFinalizeStatisticsAttributes[] = {
    {780, "OPERATION_BN_FINALIZE_STATS_MODE", ValueType::bn_finalize_mode},
    {781, "OPERATION_BN_FINALIZE_MATH_PREC", ValueType::data_type},
    {782, "OPERATION_BN_FINALIZE_Y_SUM_DESC", ValueType::descriptor, false, Role::input, "sum"},
    {783, "OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC", ValueType::descriptor, false, Role::input, "square_sum"},
    {784, "OPERATION_BN_FINALIZE_SCALE_DESC", ValueType::descriptor, false, Role::input, "scale"},
    {785, "OPERATION_BN_FINALIZE_BIAS_DESC", ValueType::descriptor, false, Role::input, "bias"},
    {786, "OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC", ValueType::descriptor, false, Role::input, "running_mean"},
    {787, "OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC", ValueType::descriptor, false, Role::input, "running_variance"},
    {794, "OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC", ValueType::descriptor, false, Role::input, "count"},
    {795, "OPERATION_BN_FINALIZE_EPSILON_DESC", ValueType::descriptor, false, Role::input, "epsilon"},
    {796, "OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC", ValueType::descriptor, false, Role::input, "factor"},
    {788, "OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC", ValueType::descriptor, false, Role::output,
     "next_running_mean"},
    {789, "OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC", ValueType::descriptor, false, Role::output,
     "next_running_variance"},
    {790, "OPERATION_BN_FINALIZE_SAVED_MEAN_DESC", ValueType::descriptor, false, Role::output, "mean"},
    {791, "OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC", ValueType::descriptor, false, Role::output, "inverse_deviation"},
    {792, "OPERATION_BN_FINALIZE_EQ_SCALE_DESC", ValueType::descriptor, false, Role::output, "equivalent_scale"},
    {793, "OPERATION_BN_FINALIZE_EQ_BIAS_DESC", ValueType::descriptor, false, Role::output, "equivalent_bias"},
};
constexpr Attribute kReductionAttributes[] = {
    {1600, "REDUCTION_OPERATOR", ValueType::reduction_operator, true},
    {1601, "REDUCTION_COMP_TYPE", ValueType::data_type},
    {1602, "REDUCTION_IS_DETERMINISTIC", ValueType::boolean},
};
constexpr Attribute kOperationReductionAttributes[] = {
    {1610, "OPERATION_REDUCTION_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {1611, "OPERATION_REDUCTION_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {1612, "OPERATION_REDUCTION_DESC", ValueType::descriptor, true},
};
constexpr Attribute kOperationBnBwdWeightsAttributes[] = {
    {1620, "OPERATION_BN_BWD_WEIGHTS_MATH_PREC", ValueType::data_type},
    {1621, "OPERATION_BN_BWD_WEIGHTS_MEAN_DESC", ValueType::descriptor, false, Role::input, "mean"},
    {1622, "OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC", ValueType::descriptor, false, Role::input, "inverse_deviation"},
    {1623, "OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC", ValueType::descriptor, false, Role::input, "scale"},
    {1624, "OPERATION_BN_BWD_WEIGHTS_X_DESC", ValueType::descriptor, false, Role::input, "x"},
    {1625, "OPERATION_BN_BWD_WEIGHTS_DY_DESC", ValueType::descriptor, false, Role::input, "dy"},
    {1626, "OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC", ValueType::descriptor, false, Role::output, "dscale"},
    {1627, "OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC", ValueType::descriptor, false, Role::output, "dbias"},
    {1628, "OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC", ValueType::descriptor, false, Role::output,
     "equivalent_dy_scale"},
    {1629, "OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC", ValueType::descriptor, false, Role::output,
     "equivalent_x_scale"},
    {1630, "OPERATION_BN_BWD_WEIGHTS_EQ_BIAS", ValueType::descriptor, false, Role::output, "equivalent_bias"},
};
constexpr Attribute kResampleAttributes[] = {
    {1700, "RESAMPLE_MODE", ValueType::resample_mode, true},
    {1701, "RESAMPLE_COMP_TYPE", ValueType::data_type},
    {1702, "RESAMPLE_SPATIAL_DIMS", ValueType::int64},
    {1703, "RESAMPLE_POST_PADDINGS", ValueType::int64_or_fraction},
    {1704, "RESAMPLE_PRE_PADDINGS", ValueType::int64_or_fraction},
    {1705, "RESAMPLE_STRIDES", ValueType::int64_or_fraction},
    {1706, "RESAMPLE_WINDOW_DIMS", ValueType::int64_or_fraction},
    {1707, "RESAMPLE_NAN_PROPAGATION", ValueType::nan_propagation},
    {1708, "RESAMPLE_PADDING_MODE", ValueType::padding_mode},
};
constexpr Attribute kOperationResampleFwdAttributes[] = {
    {1710, "OPERATION_RESAMPLE_FWD_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {1711, "OPERATION_RESAMPLE_FWD_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {1712, "OPERATION_RESAMPLE_FWD_IDXDESC", ValueType::descriptor, false, Role::output, "index"},
    {1713, "OPERATION_RESAMPLE_FWD_ALPHA", ValueType::real},
    {1714, "OPERATION_RESAMPLE_FWD_BETA", ValueType::real},
    {1716, "OPERATION_RESAMPLE_FWD_DESC", ValueType::descriptor, true},
};
constexpr Attribute kOperationResampleBwdAttributes[] = {
    {1720, "OPERATION_RESAMPLE_BWD_DXDESC", ValueType::descriptor, true, Role::output, "dx"},
    {1721, "OPERATION_RESAMPLE_BWD_DYDESC", ValueType::descriptor, true, Role::input, "dy"},
    {1722, "OPERATION_RESAMPLE_BWD_IDXDESC", ValueType::descriptor, false, Role::input, "index"},
    {1723, "OPERATION_RESAMPLE_BWD_ALPHA", ValueType::real},
    {1724, "OPERATION_RESAMPLE_BWD_BETA", ValueType::real},
    {1725, "OPERATION_RESAMPLE_BWD_DESC", ValueType::descriptor, true},
    {1726, "OPERATION_RESAMPLE_BWD_XDESC", ValueType::descriptor, false, Role::input, "x"},
    {1727, "OPERATION_RESAMPLE_BWD_YDESC", ValueType::descriptor, false, Role::input, "y"},
};
constexpr Attribute kOperationConcatAttributes[] = {
    {1800, "OPERATION_CONCAT_AXIS", ValueType::int64},
    {1801, "OPERATION_CONCAT_INPUT_DESCS", ValueType::descriptor, true, Role::input, "x"},
    {1802, "OPERATION_CONCAT_INPLACE_INDEX", ValueType::int64},
    {1803, "OPERATION_CONCAT_OUTPUT_DESC", ValueType::descriptor, true, Role::output, "y"},
};
constexpr Attribute kOperationNormForwardAttributes[] = {
    {2000, "OPERATION_NORM_FWD_MODE", ValueType::norm_mode, true},
    {2001, "OPERATION_NORM_FWD_PHASE", ValueType::norm_phase},
    {2002, "OPERATION_NORM_FWD_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {2003, "OPERATION_NORM_FWD_MEAN_DESC", ValueType::descriptor, false, Role::output, "mean"},
    {2004, "OPERATION_NORM_FWD_INV_VARIANCE_DESC", ValueType::descriptor, false, Role::output, "inverse_variance"},
    {2005, "OPERATION_NORM_FWD_SCALE_DESC", ValueType::descriptor, false, Role::input, "scale"},
    {2006, "OPERATION_NORM_FWD_BIAS_DESC", ValueType::descriptor, false, Role::input, "bias"},
    {2007, "OPERATION_NORM_FWD_EPSILON_DESC", ValueType::descriptor, false, Role::input, "epsilon"},
    {2008, "OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC", ValueType::descriptor, false, Role::input, "factor"},
    {2009, "OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC", ValueType::descriptor, false, Role::input, "running_mean"},
    {2010, "OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC", ValueType::descriptor, false, Role::input, "running_variance"},
    {2011, "OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC", ValueType::descriptor, false, Role::output,
     "next_running_mean"},
    {2012, "OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC", ValueType::descriptor, false, Role::output,
     "next_running_variance"},
    {2013, "OPERATION_NORM_FWD_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {2014, "OPERATION_NORM_FWD_PEER_STAT_DESCS", ValueType::descriptor, false, Role::input, "peer_statistics"},
};
constexpr Attribute kOperationNormBackwardAttributes[] = {
    {2100, "OPERATION_NORM_BWD_MODE", ValueType::norm_mode, true},
    {2101, "OPERATION_NORM_BWD_XDESC", ValueType::descriptor, false, Role::input, "x"},
    {2102, "OPERATION_NORM_BWD_MEAN_DESC", ValueType::descriptor, false, Role::input, "mean"},
    {2103, "OPERATION_NORM_BWD_INV_VARIANCE_DESC", ValueType::descriptor, false, Role::input, "inverse_variance"},
    {2104, "OPERATION_NORM_BWD_DYDESC", ValueType::descriptor, false, Role::input, "dy"},
    {2105, "OPERATION_NORM_BWD_SCALE_DESC", ValueType::descriptor, false, Role::input, "scale"},
    {2106, "OPERATION_NORM_BWD_EPSILON_DESC", ValueType::descriptor, false, Role::input, "epsilon"},
    {2107, "OPERATION_NORM_BWD_DSCALE_DESC", ValueType::descriptor, false, Role::output, "dscale"},
    {2108, "OPERATION_NORM_BWD_DBIAS_DESC", ValueType::descriptor, false, Role::output, "dbias"},
    {2109, "OPERATION_NORM_BWD_DXDESC", ValueType::descriptor, true, Role::output, "dx"},
    {2110, "OPERATION_NORM_BWD_PEER_STAT_DESCS", ValueType::descriptor, false, Role::input, "peer_statistics"},
};
constexpr Attribute kOperationReshapeAttributes[] = {
    {2200, "OPERATION_RESHAPE_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {2201, "OPERATION_RESHAPE_YDESC", ValueType::descriptor, true, Role::output, "y"},
};
constexpr Attribute kRngAttributes[] = {
    {2300, "RNG_DISTRIBUTION", ValueType::rng_distribution, true},
    {2301, "RNG_NORMAL_DIST_MEAN", ValueType::real},
    {2302, "RNG_NORMAL_DIST_STANDARD_DEVIATION", ValueType::real},
    {2303, "RNG_UNIFORM_DIST_MAXIMUM", ValueType::real},
    {2304, "RNG_UNIFORM_DIST_MINIMUM", ValueType::real},
    {2305, "RNG_BERNOULLI_DIST_PROBABILITY", ValueType::real},
};
constexpr Attribute kOperationRngAttributes[] = {
    {2310, "OPERATION_RNG_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {2311, "OPERATION_RNG_SEED", ValueType::int64_or_descriptor, false, Role::input, "seed"},
    {2312, "OPERATION_RNG_DESC", ValueType::descriptor, true},
    {2313, "OPERATION_RNG_OFFSET_DESC", ValueType::descriptor, false, Role::input, "offset"},
};
constexpr Attribute kKernelCacheAttributes[] = {
    {2400, "KERNEL_CACHE_OPERATION_GRAPH", ValueType::descriptor},
    {2401, "KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED", ValueType::boolean},
};
constexpr Attribute kOperationPagedCacheLoadAttributes[] = {
    {1950, "OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC", ValueType::descriptor, true, Role::input, "container"},
    {1951, "OPERATION_PAGED_CACHE_LOAD_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {1952, "OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC", ValueType::descriptor, true, Role::input, "lengths"},
    {1953, "OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC", ValueType::descriptor, true, Role::input, "page_table"},
};
constexpr Attribute kOperationBlockScaleQuantizeAttributes[] = {
    {2500, "OPERATION_BLOCK_SCALE_QUANTIZE_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {2501, "OPERATION_BLOCK_SCALE_QUANTIZE_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {2502, "OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC", ValueType::descriptor, true, Role::output, "scale"},
    {2503, "OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC", ValueType::data_type},
    {2504, "OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE", ValueType::int32},
};
constexpr Attribute kOperationBlockScaleDequantizeAttributes[] = {
    {2600, "OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC", ValueType::descriptor, true, Role::input, "x"},
    {2601, "OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC", ValueType::descriptor, true, Role::input, "scale"},
    {2602, "OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC", ValueType::descriptor, true, Role::output, "y"},
    {2603, "OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC", ValueType::data_type},
    {2604, "OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE", ValueType::int32},
    {2605, "OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE", ValueType::boolean},
};
constexpr Attribute kDevicepropAttributes[] = {
    {2700, "DEVICEPROP_DEVICE_ID", ValueType::int32},
    {2701, "DEVICEPROP_HANDLE", ValueType::handle},
};
constexpr Attribute kOperationSdpaFwdAttributes[] = {
    {2800, "OPERATION_SDPA_FWD_QDESC", ValueType::descriptor, true, Role::input, "q"},
    {2801, "OPERATION_SDPA_FWD_KDESC", ValueType::descriptor, true, Role::input, "k"},
    {2802, "OPERATION_SDPA_FWD_VDESC", ValueType::descriptor, true, Role::input, "v"},
    {2803, "OPERATION_SDPA_FWD_ODESC", ValueType::descriptor, true, Role::output, "o"},
    {2804, "OPERATION_SDPA_FWD_STATSDESC", ValueType::descriptor, false, Role::output, "statistics"},
    {2805, "OPERATION_SDPA_FWD_SCALEDESC", ValueType::descriptor, false, Role::input, "scale"},
    {2806, "OPERATION_SDPA_FWD_BLOCK_MASK_DESC", ValueType::descriptor, false, Role::input, "block_mask"},
    {2807, "OPERATION_SDPA_FWD_PAGE_TABLE_KDESC", ValueType::descriptor, false, Role::input, "page_table_k"},
    {2808, "OPERATION_SDPA_FWD_PAGE_TABLE_VDESC", ValueType::descriptor, false, Role::input, "page_table_v"},
    {2809, "OPERATION_SDPA_FWD_SEQ_LEN_QDESC", ValueType::descriptor, false, Role::input, "lengths_q"},
    {2810, "OPERATION_SDPA_FWD_SEQ_LEN_KVDESC", ValueType::descriptor, false, Role::input, "lengths_kv"},
};
constexpr Attribute kOperationMoeGroupedMatmulAttributes[] = {
    {2900, "OPERATION_MOE_GROUPED_MATMUL_MODE", ValueType::moe_mode},
    {2901, "OPERATION_MOE_GROUPED_MATMUL_MATH_PREC", ValueType::data_type},
    {2902, "OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC", ValueType::descriptor, true, Role::input, "tokens"},
    {2903, "OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC", ValueType::descriptor, true, Role::input, "weights"},
    {2904, "OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC", ValueType::descriptor, true, Role::input,
     "first_tokens"},
    {2905, "OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC", ValueType::descriptor, true, Role::output, "y"},
    {2906, "OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC", ValueType::descriptor, false, Role::input, "token_index"},
    {2907, "OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC", ValueType::descriptor, false, Role::input, "token_ks"},
    {2908, "OPERATION_MOE_GROUPED_MATMUL_TOP_K", ValueType::int32},
};
constexpr Attribute kOperationSdpaBwdAttributes[] = {
    {2851, "OPERATION_SDPA_BWD_QDESC", ValueType::descriptor, true, Role::input, "q"},
    {2852, "OPERATION_SDPA_BWD_KDESC", ValueType::descriptor, true, Role::input, "k"},
    {2853, "OPERATION_SDPA_BWD_VDESC", ValueType::descriptor, true, Role::input, "v"},
    {2854, "OPERATION_SDPA_BWD_ODESC", ValueType::descriptor, true, Role::input, "o"},
    {2855, "OPERATION_SDPA_BWD_STATSDESC", ValueType::descriptor, true, Role::input, "statistics"},
    {2856, "OPERATION_SDPA_BWD_SCALEDESC", ValueType::descriptor, false, Role::input, "scale"},
    {2857, "OPERATION_SDPA_BWD_SEQ_LEN_QDESC", ValueType::descriptor, false, Role::input, "lengths_q"},
    {2858, "OPERATION_SDPA_BWD_SEQ_LEN_KVDESC", ValueType::descriptor, false, Role::input, "lengths_kv"},
    {2859, "OPERATION_SDPA_BWD_DQDESC", ValueType::descriptor, true, Role::output, "dq"},
    {2860, "OPERATION_SDPA_BWD_DKDESC", ValueType::descriptor, true, Role::output, "dk"},
    {2861, "OPERATION_SDPA_BWD_DVDESC", ValueType::descriptor, true, Role::output, "dv"},
    {2862, "OPERATION_SDPA_BWD_DODDESC", ValueType::descriptor, true, Role::input, "do"},
};

constexpr Kind kKinds[] = {
    {0, "POINTWISE", "", kPointwiseAttributes},
    {1, "CONVOLUTION", "", kConvolutionAttributes},
    {2, "ENGINE", "", kEngineAttributes},
    {3, "ENGINECFG", "", kEnginecfgAttributes},
    {4, "ENGINEHEUR", "", kEngineheurAttributes},
    {5, "EXECUTION_PLAN", "", kExecutionPlanAttributes},
    {7, "KNOB_CHOICE", "", kKnobChoiceAttributes},
    {8, "KNOB_INFO", "", kKnobInfoAttributes},
    {10, "OPERATION_CONVOLUTION_FORWARD", "convolution_forward", kOperationConvolutionForwardAttributes},
    {11, "OPERATION_CONVOLUTION_BACKWARD_FILTER", "convolution_weight_gradient",
     kOperationConvolutionBackwardFilterAttributes},
    {12, "OPERATION_CONVOLUTION_BACKWARD_DATA", "convolution_data_gradient",
     kOperationConvolutionBackwardDataAttributes},
    {13, "OPERATION_POINTWISE", "pointwise", kOperationPointwiseAttributes},
    {14, "OPERATION_GEN_STATS", "gen_stats", kOperationGenStatsAttributes},
    {15, "OPERATIONGRAPH", "", kOperationgraphAttributes},
    {16, "VARIANT_PACK", "", kVariantPackAttributes},
    {17, "TENSOR", "", kTensorAttributes},
    {18, "MATMUL", "", kMatmulAttributes},
    {19, "OPERATION_MATMUL", "matmul", kOperationMatmulAttributes},
    {20, "OPERATION_BN_FINALIZE_STATISTICS", "batch_norm_finalize", kOperationBnFinalizeStatisticsAttributes},
    {21, "REDUCTION", "", kReductionAttributes},
    {22, "OPERATION_REDUCTION", "reduction", kOperationReductionAttributes},
    {23, "OPERATION_BN_BWD_WEIGHTS", "batch_norm_weight_gradient", kOperationBnBwdWeightsAttributes},
    {24, "RESAMPLE", "", kResampleAttributes},
    {25, "OPERATION_RESAMPLE_FWD", "resample_forward", kOperationResampleFwdAttributes},
    {26, "OPERATION_RESAMPLE_BWD", "resample_backward", kOperationResampleBwdAttributes},
    {27, "OPERATION_CONCAT", "concatenate", kOperationConcatAttributes},
    {29, "OPERATION_NORM_FORWARD", "norm_forward", kOperationNormForwardAttributes},
    {30, "OPERATION_NORM_BACKWARD", "norm_backward", kOperationNormBackwardAttributes},
    {31, "OPERATION_RESHAPE", "reshape", kOperationReshapeAttributes},
    {32, "RNG", "", kRngAttributes},
    {33, "OPERATION_RNG", "rng", kOperationRngAttributes},
    {34, "KERNEL_CACHE", "", kKernelCacheAttributes},
    {35, "OPERATION_PAGED_CACHE_LOAD", "paged_cache_load", kOperationPagedCacheLoadAttributes},
    {36, "OPERATION_BLOCK_SCALE_QUANTIZE", "block_scale_quantize", kOperationBlockScaleQuantizeAttributes},
    {37, "OPERATION_BLOCK_SCALE_DEQUANTIZE", "block_scale_dequantize", kOperationBlockScaleDequantizeAttributes},
    {38, "DEVICEPROP", "", kDevicepropAttributes},
    {41, "OPERATION_SDPA_FWD", "sdpa_forward", kOperationSdpaFwdAttributes},
    {42, "OPERATION_MOE_GROUPED_MATMUL", "moe_grouped_matmul", kOperationMoeGroupedMatmulAttributes},
    {43, "OPERATION_SDPA_BWD", "sdpa_backward", kOperationSdpaBwdAttributes},
};

}  // namespace

const Kind* kind_of(int number) {
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return one.number == number; });
  return found == std::end(kKinds) ? nullptr : found;
}

const Attribute* attribute_of(const Kind& kind, int number) {
  const auto found = std::find_if(kind.attributes.begin(), kind.attributes.end(),
                                  [&](const Attribute& one) { return one.number == number; });
  return found == kind.attributes.end() ? nullptr : &*found;
}

}  // namespace manyworlds::experiments::capture::cudnn
