#!/bin/sh
# Compiles the capture: build.sh OUTPUT_FOLDER [13|12]. Needs a C++20 compiler (CXX; else c++) and python3, nothing of CUDA.
set -eu
out=$1 cuda=${2:-13}
room=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
python3 "$room/unmodelled.py" "$room"/names/*.txt > "$out/unmodelled.cpp"
# NCCL's functions have no version; they are found under any.
cat > "$out/versions.map" <<MAP
libcudart.so.$cuda { global: cuda*; __cuda*; nccl*; pnccl*; local: *; };
libcublasLt.so.$cuda { global: cublasLt*; };
libcublas.so.$cuda { global: cublas[!L]*; cublasL[!t]*; };
MAP
${CXX:-c++} -std=c++20 -O1 -Wall -Wextra -fPIC -shared -DMANYWORLDS_CAPTURE_CUDA="$cuda" -I"$room/../.." \
  "$room"/*.cpp "$out/unmodelled.cpp" -Wl,--version-script="$out/versions.map" -Wl,-soname,libcudart.so."$cuda" \
  -o "$out/libcudart.so.$cuda"
for name in libnccl.so.2 libcudart.so "libcublasLt.so.$cuda" "libcublas.so.$cuda"; do
  ln -sf "libcudart.so.$cuda" "$out/$name"
done
