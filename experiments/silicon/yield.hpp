// How many dies a wafer has, and which share of them works.
#pragma once

#include <cstdint>

#include "experiments/silicon/area.hpp"
#include "experiments/silicon/chip.hpp"

namespace manyworlds::experiments::silicon {

/// Returns how many dies of this area a wafer of 300 mm has, those at its edge left out, which need not be whole: the
/// formula of de Vries ("Investigation of gross die per wafer formulas", IEEE TSM 2005) that ttm-cas uses. 0 if none.
double dies_per_wafer(double die_mm2);

/// Returns the share of pieces of silicon of this area without a defect: with D defects on average, ((1 - e^-D) / D)^2
/// by Murphy (1964), e^-D by Poisson, and (1 + D/c)^-c by the negative binomial of Stapper (1983) with parameter c.
double yield_of(double mm2, const Process& process);

/// Returns the share of dies that can be sold: no defect outside SMs, and no more SMs with one than there are spares.
/// Defects of SMs count as independent of one another. Spares of L2 and of interfaces raise nothing.
double die_yield(const Chip& chip, const DieArea& area, const Process& process);

}  // namespace manyworlds::experiments::silicon
