#!/usr/bin/env python3
"""Writes experiments/catalog/shapes/GPU.csv: measured GEMMs as percentages of the time that the model has for them.

Usage: script/tabulate_shapes.py MANYWORLDS TABLE...
MANYWORLDS is the program, whose model the ratios are to, and a TABLE is a NAME_gemm.csv.gz of ai-dynamo/aiconfigurator
@095f58a. Write the tables anew after each change of the model of GEMMs or of its constants.

Launches, and the quantisation of the left operand that the times of 8 and 4 bits include, are subtracted on both sides; rows
of which they are more than a quarter are left out, as are those below 20 us and GEMMs of few rows, which training does not run.
"""
import csv
import gzip
import json
import subprocess
import sys

from normalise_measured import MEASURED, normal, rows_of

SHAPES = MEASURED.parent / 'catalog' / 'shapes'
FORMATS = {'bfloat16': 'bf16', 'fp8': 'fp8', 'nvfp4': 'nvfp4'}  # names in the tables and in ours
LAUNCH_US, SHORTEST_US, LEAST, LARGEST_EXTRA = 3.2, 20, 256, 0.25


def read_table(path):
    with (gzip.open if path.endswith('.gz') else open)(path, 'rt', newline='') as file:
        return list(csv.DictReader(file))


def predicted(program, path):
    """Returns the program's prediction in us, by line of the file."""
    told = json.loads(subprocess.run([program, 'validate', path, '--json', '--rows'], check=True, capture_output=True).stdout)
    return {int(row['id'].rsplit(':', 1)[1]): row['predicted'] for kind in told['kinds'] for row in kind['rows'] if 'predicted' in row}


def tabulate(program, path, words, operators):
    """Returns the GPU of a table and its percentages by (format, n, k) and m."""
    rows, model, found = read_table(path), predicted(program, path), {}
    gpu = normal(words, 'gpu', rows[0]['device'])
    for line, row in enumerate(rows, 2):
        us = 1e3 * float(row['latency'])
        m, n, k = (int(row[size]) for size in 'mnk')
        if row['gemm_dtype'] not in FORMATS or us < SHORTEST_US or min(m, n, k) < LEAST or m % 2:
            continue
        operator = operators[gpu, FORMATS[row['gemm_dtype']]]
        extra = LAUNCH_US + float(operator['fixed_us']) + 1e-6 * float(operator['quantise_us_per_m']) * m * k
        percent = round(100 * (us - extra) / (model[line] - extra))
        if extra <= LARGEST_EXTRA * us and percent > 0:
            found.setdefault((FORMATS[row['gemm_dtype']], n, k), {})[m] = percent
    return gpu, found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split('\n\n')[1])
    words = rows_of(MEASURED / 'words.csv')
    operators = {(row['gpu'], row['format']): row for row in rows_of(MEASURED / 'gemm_operators.csv') if row['operator'] == 'gemm'}
    for path in sys.argv[2:]:
        gpu, found = tabulate(sys.argv[1], path, words, operators)
        sizes = sorted({m for row in found.values() for m in row})
        target = SHAPES / f'{gpu}.csv'
        with open(target, 'w', newline='') as file:
            file.write(','.join(['format', 'n', 'k', *map(str, sizes)]) + '\n')
            for key, row in sorted(found.items()):
                file.write(','.join(map(str, [*key, *(row.get(m, '') for m in sizes)])).rstrip(',') + '\n')
        print(f'{gpu}: {sum(map(len, found.values()))} shapes, {target.stat().st_size} bytes')


if __name__ == '__main__':
    main()
