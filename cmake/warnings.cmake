# Flags every target shares. core/ must give the same bits everywhere: no fused multiply-add, no fast-math.
add_library(manyworlds_flags INTERFACE)
target_compile_options(manyworlds_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(manyworlds_flags INTERFACE -Wno-restrict)  # GCC bug 105651: false alarm on "a" + std::string
endif()
if(MANYWORLDS_WERROR)
  target_compile_options(manyworlds_flags INTERFACE -Werror)
endif()
if(MANYWORLDS_SANITIZE)
  target_compile_options(manyworlds_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(manyworlds_flags INTERFACE -fsanitize=address,undefined)
endif()
