# Flags every target shares. core/ must give the same bits everywhere: no fused multiply-add, no fast-math.
add_library(manyworlds_flags INTERFACE)
target_compile_options(manyworlds_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -ffp-contract=off)
if(MANYWORLDS_WERROR)
  target_compile_options(manyworlds_flags INTERFACE -Werror)
endif()
if(MANYWORLDS_SANITIZE)
  target_compile_options(manyworlds_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(manyworlds_flags INTERFACE -fsanitize=address,undefined)
endif()
