#!/usr/bin/env python3
"""Selects rows of published tables of kernels for experiments/measured, the same ones each time.

Usage: script/select_kernels.py FOLDER
FOLDER holds the tables of ai-dynamo/aiconfigurator @095f58a and of sitar-lab/NeuSight @6945927 as NAME_gemm.csv.gz,
NAME_moe.csv.gz, NAME_context_attention.csv.gz, NAME_context_mla.csv.gz and neusight_elem.csv.gz. Of each GPU and number
format every n-th row is taken, in the order of its sizes, so that about ROWS of them are long and a fifth as many short.
Rows that `validate` does not predict are left out.
"""
import csv
import glob
import gzip
import os
import sys

ROWS = 120  # of each GPU and number format
HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, '..', 'experiments', 'measured')

# Name of the compiled table: files, columns to keep, column of the number format, columns that order rows.
TABLES = {
    'kernels_gemm': ('*_gemm.csv.gz', ['device', 'kernel_source', 'gemm_dtype', 'm', 'n', 'k', 'latency'],
                     'gemm_dtype', ['m', 'n', 'k']),
    'kernels_experts': ('*_moe.csv.gz',
                        ['device', 'kernel_source', 'moe_dtype', 'num_tokens', 'hidden_size', 'inter_size', 'topk',
                         'num_experts', 'moe_tp_size', 'moe_ep_size', 'distribution', 'latency'],
                        'moe_dtype', ['hidden_size', 'inter_size', 'num_experts', 'moe_ep_size', 'num_tokens']),
    'kernels_attention': ('*_context_attention.csv.gz',
                          ['device', 'kernel_source', 'batch_size', 'isl', 'num_heads', 'num_key_value_heads',
                           'head_dim', 'window_size', 'attn_dtype', 'kv_cache_dtype', 'latency'],
                          'kv_cache_dtype', ['head_dim', 'window_size', 'isl', 'num_heads', 'batch_size']),
    'kernels_latent_attention': ('*_context_mla.csv.gz',
                                 ['device', 'mla_dtype', 'kv_cache_dtype', 'num_heads', 'batch_size', 'isl', 'latency'],
                                 'kv_cache_dtype', ['isl', 'num_heads', 'batch_size']),
    'kernels_elementwise': ('neusight_elem.csv.gz', ['device', 'op', 'b', 'h', 'latency_ms'], 'device', ['b', 'h']),
}
FORMATS = {'bfloat16', 'fp8', 'fp8_block', 'nvfp4'}
LONG_MS = 0.05


def is_predicted(name, row):
    """Whether `validate` predicts such rows."""
    if name == 'kernels_experts':
        return (row['moe_dtype'] in FORMATS and row['distribution'] == 'balanced' and
                'min_latency' not in row['kernel_source'] and int(row['num_experts']) >= 2 * int(row['moe_ep_size']))
    if name == 'kernels_gemm':
        return row['gemm_dtype'] in FORMATS
    if name == 'kernels_elementwise':
        return row['op'] != 'powu' and ('V100' in row['device'] or 'A100' in row['device'])
    return 'flashinfer' not in row.get('kernel_source', '').lower()


def every_nth(rows, count):
    """Returns about `count` rows, evenly spaced."""
    step = max(1, len(rows) // count)
    return rows[step // 2::step][:count]


def select(folder, name):
    """Returns the rows of one compiled table."""
    pattern, columns, number_format, order = TABLES[name]
    groups = {}
    for path in sorted(glob.glob(os.path.join(folder, pattern))):
        with gzip.open(path, 'rt', newline='') as file:
            for row in csv.DictReader(file):
                if is_predicted(name, row):
                    groups.setdefault((row['device'], row[number_format]), []).append(row)
    chosen = []
    for _, rows in sorted(groups.items()):
        rows.sort(key=lambda row: [float(row[key]) for key in order])
        time = columns[-1]
        chosen += every_nth([row for row in rows if float(row[time]) >= LONG_MS], ROWS)
        chosen += every_nth([row for row in rows if float(row[time]) < LONG_MS], ROWS // 5)
    return columns, chosen


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: script/select_kernels.py FOLDER')
    for name in TABLES:
        columns, rows = select(sys.argv[1], name)
        with open(os.path.join(TARGET, name + '.csv'), 'w', newline='') as file:
            writer = csv.DictWriter(file, columns, extrasaction='ignore', lineterminator='\n')
            writer.writeheader()
            for row in rows:
                row[columns[-1]] = f'{float(row[columns[-1]]):.6g}'
                writer.writerow(row)
        print(f'{name}.csv: {len(rows)} rows')


if __name__ == '__main__':
    main()
