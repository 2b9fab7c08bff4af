#!/usr/bin/env python3
"""Selects rows of published tables of kernels for experiments/measured, the same ones each time.

Usage: script/select_kernels.py FOLDER
FOLDER holds the tables of ai-dynamo/aiconfigurator @095f58a and of sitar-lab/NeuSight @6945927 as NAME_gemm.csv.gz,
NAME_moe.csv.gz, NAME_context_attention.csv.gz, NAME_context_mla.csv.gz, NAME_computescale.csv.gz and neusight_{elem,ln,softmax}
.csv.gz, and simumax_NAME.json of MooreThreads/SimuMax @4dcaae5, whose efficiencies become times. Of each GPU and number format
every n-th row is taken, in the order of its sizes, so that about ROWS of them are long and a fifth as many short; SimuMax'
rows are taken all. Rows that `validate` does not predict are left out.
"""
import csv
import glob
import gzip
import json
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
    'kernels_norm': ('neusight_ln.csv.gz', ['device', 'op', 'b', 'h', 'latency_ms'], 'device', ['b', 'h']),
    'kernels_softmax': ('neusight_softmax.csv.gz', ['device', 'op', 'b', 'h', 'latency_ms'], 'device', ['b', 'h']),
    'kernels_scale': ('*_computescale.csv.gz', ['device', 'op_name', 'm', 'k', 'quant_dtype', 'latency'], 'quant_dtype', ['m', 'k']),
}
# SimuMax' systems: the GPU, and the library of its fused attention.
SYSTEMS = {'a100_pcie_bf16': ('NVIDIA A100 80GB PCIe', 'flash2'), 'b200_bf16_ceperm': ('NVIDIA B200', 'cudnn')}
PASSES = {'TN': 'forward', 'NN': 'input gradient', 'NT': 'weight gradient', 'fwd': 'forward', 'bwd_grad_act': 'input gradient',
          'bwd_grad_w': 'weight gradient'}
FORMATS = {'bfloat16', 'fp8', 'fp8_block', 'nvfp4'}
LONG_MS = 0.05


def is_predicted(name, row):
    """Whether `validate` predicts such rows."""
    if name == 'kernels_experts':
        return (row['moe_dtype'] in FORMATS and row['distribution'] == 'balanced' and
                'min_latency' not in row['kernel_source'] and int(row['num_experts']) >= 2 * int(row['moe_ep_size']))
    if name == 'kernels_gemm':
        return row['gemm_dtype'] in FORMATS
    if name in ('kernels_elementwise', 'kernels_norm', 'kernels_softmax'):
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


def shapes_of(operators, name):
    """Yields the fields of each shape of one of SimuMax' operators, and its TFLOP/s."""
    for text, efficiency in operators.get(name, {}).get('accurate_efficient_factor', {}).items():
        yield dict(field.split('=') for field in text.split(', ')), operators[name]['tflops'] * efficiency


def training_gemms(device, _, operators):
    for shape, tflops in shapes_of(operators, 'matmul'):
        m, n, k = (int(shape[size]) for size in 'mnk')
        yield {'device': device, 'pass': PASSES[shape['layout']], 'accumulate': int(shape['accumulate'] == 'True'),
               'out_dtype': shape['out_dtype'], 'm': m, 'n': n, 'k': k, 'experts': 0, 'latency': 2 * m * n * k / tflops / 1e9}
    for shape, tflops in shapes_of(operators, 'group_matmul'):
        experts, m, n, k = (int(shape[size]) for size in ('ng', 'M', 'N', 'K'))
        sizes = {'fwd': (m, n, k), 'bwd_grad_act': (m, k, n), 'bwd_grad_w': (n, k, m)}[shape['stage']]
        yield {'device': device, 'pass': PASSES[shape['stage']], 'accumulate': int(shape['accumulate'] == 'True'),
               'out_dtype': shape['main_grad_dtype' if shape['stage'] == 'bwd_grad_w' else 'out_dtype'],
               **dict(zip('mnk', sizes)), 'experts': experts, 'latency': 2 * experts * m * n * k / tflops / 1e9}


def training_attention(device, library, operators):
    """SimuMax counts the FLOPs of all pairs, of causal kernels too."""
    for name, products in (('sdp_fwd', 2), ('sdp_bwd', 5)):
        for shape, tflops in shapes_of(operators, name):
            batch, tokens, heads, kv_heads, d, dv = (int(shape[size]) for size in (
                'batch', 'seq_len', 'head_num', 'kv_head_num', 'qk_head_dim', 'v_head_dim'))
            yield {'device': device, 'pass': 'forward' if name == 'sdp_fwd' else 'backward', 'kernel_source': library,
                   'batch_size': batch, 'isl': tokens, 'num_heads': heads, 'num_key_value_heads': kv_heads, 'head_dim': d,
                   'v_head_dim': dv, 'latency': products * batch * tokens**2 * heads * (d + dv) / tflops / 1e9}


def of_systems(folder, rows_of):
    """Returns columns and rows of all systems' files in the folder."""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, 'simumax_*.json'))):
        with open(path, encoding='utf-8') as file:
            system = json.load(file)
        if 'accelerator' in system:
            rows += rows_of(*SYSTEMS[system['sys_name']], system['accelerator']['op'])
    return list(rows[0]), rows


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: script/select_kernels.py FOLDER')
    tables = {name: select(sys.argv[1], name) for name in TABLES}
    tables['kernels_training_gemm'] = of_systems(sys.argv[1], training_gemms)
    tables['kernels_training_attention'] = of_systems(sys.argv[1], training_attention)
    for name, (columns, rows) in tables.items():
        with open(os.path.join(TARGET, name + '.csv'), 'w', newline='') as file:
            writer = csv.DictWriter(file, columns, extrasaction='ignore', lineterminator='\n')
            writer.writeheader()
            for row in rows:
                row[columns[-1]] = f'{float(row[columns[-1]]):.6g}'
                writer.writerow(row)
        print(f'{name}.csv: {len(rows)} rows')


if __name__ == '__main__':
    main()
