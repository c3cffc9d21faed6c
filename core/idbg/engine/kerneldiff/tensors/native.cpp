// One pass over two or three tensors: figures.py describes the vector that it adds to, sums.py does the same in torch.
//
// Everything is computed in double, a register's lanes at a time, through the vector types of GCC and clang: reductions
// of floating point are not reordered without -ffast-math, which would take NaN for impossible.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

#ifdef __AVX512F__
constexpr int W = 8;          // lanes
#else
constexpr int W = 4;          // GCC keeps vectors wider than a register in memory (bench_diff --passes)
#endif
constexpr int STRIP = 4096;   // columns at a time: the sums of a strip's columns stay in the cache
constexpr int PART = 1024;    // columns in one go: their errors stay in the first cache until the histogram has them
constexpr int BINS = 33;      // figures.BINS: 0, below the first bound, and from each bound to the next

typedef double V __attribute__((vector_size(8 * W)));
typedef int64_t M __attribute__((vector_size(8 * W)));
typedef uint64_t U __attribute__((vector_size(8 * W)));
typedef float F __attribute__((vector_size(4 * W)));
typedef int32_t I __attribute__((vector_size(4 * W)));
typedef uint32_t UI __attribute__((vector_size(4 * W)));
typedef int16_t S __attribute__((vector_size(2 * W)));
typedef uint16_t US __attribute__((vector_size(2 * W)));

// The header, as figures.py numbers it.
enum Place {
  NONFINITE, SUM_ABS, SUM_SQUARES, MAX_ABS, ARG_MAX, SUM_REL, MAX_REL, MAX_SCALED, MISMATCHES,
  REFERENCE_SQUARES, TEST_SQUARES, PRODUCTS, MAX_ULP,
  TEST_ERROR, EAGER_ERROR, TEST_MAX, EAGER_MAX, FLOAT64_SQUARES, FLOAT64_MAX, HISTOGRAM
};
constexpr int HEADER = HISTOGRAM + BINS;

struct Half { uint16_t bits; };
struct Brain { uint16_t bits; };

template <class To, class From> To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
template <class R, class T> R read(const T* from) {
  R found;
  std::memcpy(&found, from, sizeof found);
  return found;
}

V load(const double* from) { return read<V>(from); }
V load(const float* from) { return __builtin_convertvector(read<F>(from), V); }
V load(const Brain* from) {
  const UI wide = __builtin_convertvector(read<US>(from), UI) << 16;
  return __builtin_convertvector(bits_of<F>(wide), V);
}
V load(const Half* from) {
  const UI half = __builtin_convertvector(read<US>(from), UI);
  const UI shifted = (half & 0x7fff) << 13;
  F value = bits_of<F>(shifted) * 0x1p112f;  // the exponents' biases differ by 112; right for subnormals too
  const UI special = (UI)((half & 0x7c00) == 0x7c00) & (shifted | 0x7f800000u);
  const UI finite = (UI)((half & 0x7c00) != 0x7c00) & bits_of<UI>(value);
  return __builtin_convertvector(bits_of<F>(special | finite | ((half & 0x8000) << 16)), V);
}

// Bits as integers in the order of the numbers: neighbours are 1 apart, both zeros are 0.
M in_order(M bits, int64_t lowest) { return bits < 0 ? lowest - bits : bits; }
M ordered(const double* from) { return in_order(read<M>(from), INT64_MIN); }
M ordered(const float* from) { return in_order(__builtin_convertvector(read<I>(from), M), INT32_MIN); }
template <class T> M ordered(const T* from) {
  return in_order(__builtin_convertvector(read<S>(from), M), INT16_MIN);
}

V magnitude(V x) { return bits_of<V>(bits_of<M>(x) & INT64_MAX); }
M finite(V x) { return magnitude(x) <= DBL_MAX; }
V keep(M mask, V x) { return bits_of<V>(bits_of<M>(x) & mask); }
V larger(V x, V y) { return x > y ? x : y; }
template <class T> auto total(T x) {
  std::remove_reference_t<decltype(x[0])> sum = 0;
  for (int lane = 0; lane < W; lane++) sum += x[lane];
  return sum;
}
double largest(V x) {
  double found = x[0];
  for (int lane = 1; lane < W; lane++) found = std::max(found, x[lane]);
  return found;
}

struct Grid { int64_t rows, columns, row_step, column_step, tile_rows, tile_columns; };

// What stays the same for tensors of one dtype and shape, and the piece: rows x columns elements at (row, column) of the
// grid. `kind`: 0 float64, 1 float32, 2 float16, 3 bfloat16; `length`: of the vector,
// which two places follow. native.py makes it.
struct Plan {
  int64_t kind, full, threads, length, rows, columns, row, column;
  Grid grid;
  double atol, rtol, tiny;
};

struct Job : Plan {
  const void *reference, *test;
  const double* float64;  // null: there are two sides
  const double* bounds;
};

// What is added up lane by lane; `arg` is the flat index of `max`.
struct Lanes {
  V abs, squares, max, rel, max_rel, max_scaled, rr, tt, rt, test, eager, test_max, eager_max, ff, f_max;
  M arg, mismatches, nonfinite;
  U ulp;
  uint64_t histogram[BINS];
  // Errors that the histogram has not counted yet, the largest of them, and how many are not zero
  V here;
  M unequal;
  int waiting;
  double errors[PART];
  Lanes() { std::memset(this, 0, offsetof(Lanes, errors)); }
};

// From the top decade down until all that is not zero is counted: errors lie close, so that a few passes do, and each is
// cheaper than to look up every error's decade.
void count_decades(Lanes& lanes, const double* bounds) {
  const double most = largest(lanes.here);
  const int64_t unequal = total(lanes.unequal);
  lanes.histogram[0] += lanes.waiting - unequal;
  int64_t above = 0;
  for (int place = BINS - 3; place >= 0 && above < unequal; place--) {
    if (bounds[place] > most) continue;
    M found{};
    for (int j = 0; j < lanes.waiting; j += W) found -= read<V>(lanes.errors + j) >= bounds[place];
    const int64_t now = total(found);
    lanes.histogram[place + 2] += now - above;
    above = now;
  }
  lanes.histogram[1] += unequal - above;
  lanes.here = V{}, lanes.unequal = M{}, lanes.waiting = 0;
}

// One row's part of a strip: `count` elements, a multiple of W, at most PART. Adds the squared errors to the strip's columns (of three
// sides: `columns` the test's, `eager_columns` eager's) and to the row's.
template <class T, bool THREE, bool FULL>
inline __attribute__((always_inline)) void segment(
    const T* r, const T* t, const double* f, int count, int64_t index, const Job& job, Lanes& into, double* columns,
    double* eager_columns, double* row, double* eager_row) {
  constexpr bool PAIR = FULL || !THREE, BLOCKS = FULL || THREE;
  Lanes& s = into;
  V row_sum{}, eager_sum{}, most = s.max, most_rel = s.max_rel, most_scaled = s.max_scaled;
  V sum_abs{}, sum_squares{}, sum_rel{}, rr{}, tt{}, rt{}, ff{}, test_max = s.test_max, eager_max = s.eager_max;
  V f_max = s.f_max;
  M mismatches = s.mismatches, nonfinite = s.nonfinite, arg = s.arg;
  U ulp = s.ulp;
  M at{};
  for (int lane = 0; lane < W; lane++) at[lane] = index + lane;
  if (FULL && s.waiting + count > PART) count_decades(s, job.bounds);
  V here = s.here;
  M unequal = s.unequal;
  double* errors = s.errors + s.waiting;
  for (int j = 0; j < count; j += W, at += W) {
    const V x = load(r + j), y = load(t + j);
    const M x_fine = finite(x), y_fine = finite(y), both = x_fine & y_fine;
    M all = both;
    if (PAIR) {
      const V a = keep(both, x), b = keep(both, y), d = magnitude(b - a), size = magnitude(a);
      const V square = d * d, allowed = job.atol + job.rtol * size;
      const M more = d > most;
      most = more ? d : most;
      arg = more ? at : arg;
      sum_squares += square;
      mismatches -= d > allowed;
      rr += a * a;
      if (FULL) {
        const V rel = d / larger(size, V{} + job.tiny);
        sum_abs += d;
        sum_rel += rel;
        most_rel = larger(rel, most_rel);
        most_scaled = larger(keep(d > 0, d / allowed), most_scaled);
        tt += b * b;
        rt += a * b;
        const M p = ordered(r + j), q = ordered(t + j);
        const U apart = (U)(p > q ? p - q : q - p) & (U)both;
        ulp = apart > ulp ? apart : ulp;
        here = larger(d, here);
        unequal -= d > 0;
        std::memcpy(errors + j, &d, sizeof d);
        if (!THREE) {
          row_sum += square;
          const V column = read<V>(columns + j) + square;
          std::memcpy(columns + j, &column, sizeof column);
        }
      }
    }
    if (THREE) {
      const V exact = load(f + j);
      const M fine = y_fine & finite(exact);
      all &= fine;
      const V e = magnitude(keep(fine, y - exact)), g = magnitude(keep(fine & x_fine, x - exact));
      const V z = keep(fine, exact), ee = e * e, gg = g * g;
      test_max = larger(e, test_max);
      eager_max = larger(g, eager_max);
      ff += z * z;
      f_max = larger(magnitude(z), f_max);
      row_sum += ee;
      eager_sum += gg;
      const V column = read<V>(columns + j) + ee, eager_column = read<V>(eager_columns + j) + gg;
      std::memcpy(columns + j, &column, sizeof column);
      std::memcpy(eager_columns + j, &eager_column, sizeof eager_column);
    }
    nonfinite -= ~all;
  }
  s.nonfinite = nonfinite;
  if (PAIR) {
    s.max = most, s.arg = arg, s.mismatches = mismatches, s.squares += sum_squares, s.rr += rr;
  }
  if (FULL) {
    s.abs += sum_abs, s.rel += sum_rel, s.max_rel = most_rel, s.max_scaled = most_scaled;
    s.tt += tt, s.rt += rt, s.ulp = ulp;
    s.here = here, s.unequal = unequal, s.waiting += count;
  }
  if (THREE) {
    s.test += row_sum, s.eager += eager_sum, s.ff += ff;
    s.test_max = test_max, s.eager_max = eager_max, s.f_max = f_max;
  }
  if (BLOCKS) *row += total(row_sum);
  if (THREE) *eager_row += total(eager_sum);
}

// The parts of the vector that hold one side's blocks.
struct Blocks {
  double *rows, *columns, *tiles;
  int64_t across;
  Blocks(double* from, const Grid& grid) {
    rows = from;
    columns = rows + (grid.rows + grid.row_step - 1) / grid.row_step;
    tiles = columns + (grid.columns + grid.column_step - 1) / grid.column_step;
    across = (grid.columns + grid.tile_columns - 1) / grid.tile_columns;
  }
  int64_t size(const Grid& grid) const {
    return (tiles - rows) + across * ((grid.rows + grid.tile_rows - 1) / grid.tile_rows);
  }
  void fold(const double* strip, int count, int64_t row, int64_t column, const Grid& grid) {
    double* tile = tiles + row / grid.tile_rows * across;
    for (int j = 0; j < count; j++) {
      columns[(column + j) / grid.column_step] += strip[j];
      tile[(column + j) / grid.tile_columns] += strip[j];
    }
  }
};

void add(const Lanes& lanes, double* values) {
  const auto most = [&](Place place, double value) { values[place] = std::max(values[place], value); };
  for (int lane = 0; lane < W; lane++) {
    const bool tie = lanes.max[lane] == values[MAX_ABS] && double(lanes.arg[lane]) < values[ARG_MAX];
    if (lanes.max[lane] > values[MAX_ABS] || (tie && lanes.max[lane] > 0)) {
      values[MAX_ABS] = lanes.max[lane];
      values[ARG_MAX] = double(lanes.arg[lane]);
    }
    values[MISMATCHES] += double(lanes.mismatches[lane]);
    values[NONFINITE] += double(lanes.nonfinite[lane]);
    most(MAX_ULP, double(lanes.ulp[lane]));
  }
  values[SUM_ABS] += total(lanes.abs), values[SUM_SQUARES] += total(lanes.squares);
  values[SUM_REL] += total(lanes.rel), values[REFERENCE_SQUARES] += total(lanes.rr);
  values[TEST_SQUARES] += total(lanes.tt), values[PRODUCTS] += total(lanes.rt);
  values[TEST_ERROR] += total(lanes.test), values[EAGER_ERROR] += total(lanes.eager);
  values[FLOAT64_SQUARES] += total(lanes.ff);
  most(MAX_REL, largest(lanes.max_rel)), most(MAX_SCALED, largest(lanes.max_scaled));
  most(TEST_MAX, largest(lanes.test_max)), most(EAGER_MAX, largest(lanes.eager_max));
  most(FLOAT64_MAX, largest(lanes.f_max));
  for (int bin = 0; bin < BINS; bin++) values[HISTOGRAM + bin] += double(lanes.histogram[bin]);
}

// Rows [top, bottom) and columns [left, right) of the piece.
template <class T, bool THREE, bool FULL>
void area(const Job& job, int64_t top, int64_t bottom, int64_t left, int64_t right, double* values) {
  constexpr bool BLOCKS = FULL || THREE;
  const Grid& grid = job.grid;
  Blocks blocks(values + HEADER, grid), eager(blocks);
  if (THREE) eager = Blocks(values + HEADER + blocks.size(grid), grid);
  Lanes lanes;
  double strip[STRIP], eager_strip[STRIP], unused = 0, unread[STRIP];
  for (int64_t band = top, end; band < bottom; band = end) {
    end = std::min(bottom, (job.row + band) / grid.tile_rows * grid.tile_rows + grid.tile_rows - job.row);
    for (int64_t start = left; start < right; start += STRIP) {
      const int count = int(std::min<int64_t>(STRIP, right - start)), whole = count / W * W;
      std::fill_n(strip, std::min(STRIP, count + W), 0.0);
      if (THREE) std::fill_n(eager_strip, std::min(STRIP, count + W), 0.0);
      for (int64_t row = band; row < end; row++) {
        const int64_t offset = row * job.columns + start;
        const T *r = (const T*)job.reference + offset, *t = (const T*)job.test + offset;
        const double* f = THREE ? job.float64 + offset : unread;
        const int64_t group = (job.row + row) / grid.row_step;
        const int64_t index = (job.row + row) * grid.columns + job.column + start;
        double *sum = BLOCKS ? blocks.rows + group : &unused, *eager_sum = THREE ? eager.rows + group : &unused;
        for (int j = 0; j < whole; j += PART) {
          segment<T, THREE, FULL>(r + j, t + j, f + j, std::min(PART, whole - j), index + j, job, lanes, strip + j,
                                  eager_strip + j, sum, eager_sum);
        }
        if (const int rest = count - whole) {  // the last few, with zeros after them on every side
          T r_rest[W] = {}, t_rest[W] = {};
          double f_rest[W] = {};
          std::memcpy(r_rest, r + whole, rest * sizeof(T));
          std::memcpy(t_rest, t + whole, rest * sizeof(T));
          if (THREE) std::memcpy(f_rest, f + whole, rest * sizeof(double));
          segment<T, THREE, FULL>(r_rest, t_rest, f_rest, W, index + whole, job, lanes, strip + whole,
                                  eager_strip + whole, sum, eager_sum);
          if (FULL) lanes.histogram[0] -= W - rest;
        }
      }
      if (BLOCKS) blocks.fold(strip, count, job.row + band, job.column + start, grid);
      if (THREE) eager.fold(eager_strip, count, job.row + band, job.column + start, grid);
    }
  }
  if (FULL) count_decades(lanes, job.bounds);
  add(lanes, values);
}

void merge(const std::vector<double>& from, double* into) {
  const bool later = from[MAX_ABS] == into[MAX_ABS] && from[ARG_MAX] >= into[ARG_MAX];
  const double arg = from[MAX_ABS] < into[MAX_ABS] || later ? into[ARG_MAX] : from[ARG_MAX];
  for (size_t place = 0; place < from.size(); place++) {
    const bool maximum = place == MAX_ABS || place == MAX_REL || place == MAX_SCALED || place == MAX_ULP ||
                         place == TEST_MAX || place == EAGER_MAX || place == FLOAT64_MAX;
    into[place] = maximum ? std::max(into[place], from[place]) : into[place] + from[place];
  }
  into[ARG_MAX] = arg;
}

// Cuts the piece by whole bands of rows, or a single band by strips of columns, one part a thread.
template <class T, bool THREE, bool FULL> void measure(const Job& job, double* values) {
  const bool by_rows = job.rows >= job.grid.tile_rows * job.threads;
  const int64_t size = by_rows ? job.rows : job.columns, unit = by_rows ? job.grid.tile_rows : STRIP;
  const int64_t share = std::max<int64_t>(unit, (size / job.threads + unit - 1) / unit * unit);
  const auto part = [&](int64_t start, double* into) {
    const int64_t end = std::min(size, start + share);
    if (by_rows) area<T, THREE, FULL>(job, start, end, 0, job.columns, into);
    else area<T, THREE, FULL>(job, 0, job.rows, start, end, into);
  };
  std::vector<std::vector<double>> found;
  std::vector<std::thread> others;
  for (int64_t start = share; start < size; start += share) found.emplace_back(job.length);
  for (size_t other = 0; other < found.size(); other++)
    others.emplace_back(part, share * int64_t(other + 1), found[other].data());
  part(0, values);
  for (auto& other : others) other.join();
  for (const auto& one : found) merge(one, values);
}

template <class T> double element(const void* from, int64_t place) {
  const T one[W] = {static_cast<const T*>(from)[place]};
  return load(one)[0];
}

// Leaves both values at ARG_MAX after the vector, if the piece is all of the grid.
template <class T> void dispatch(const Job& job, double* values) {
  const auto run = job.float64 ? (job.full ? measure<T, true, true> : measure<T, true, false>)
                               : (job.full ? measure<T, false, true> : measure<T, false, false>);
  run(job, values);
  if (job.rows != job.grid.rows || job.columns != job.grid.columns) return;
  const int64_t worst = int64_t(values[ARG_MAX]);
  values[job.length] = element<T>(job.reference, worst), values[job.length + 1] = element<T>(job.test, worst);
}

}  // namespace

extern "C" {

// Adds a piece to `values`; `float64` may be null; `bounds` are the histogram's powers of ten.
void idbg_measure(const Plan* plan, const double* bounds, const void* reference, const void* test,
                  const double* float64, double* values) {
  Job job;
  static_cast<Plan&>(job) = *plan;
  job.reference = reference, job.test = test, job.float64 = float64, job.bounds = bounds;
  if (job.kind == 0) dispatch<double>(job, values);
  if (job.kind == 1) dispatch<float>(job, values);
  if (job.kind == 2) dispatch<Half>(job, values);
  if (job.kind == 3) dispatch<Brain>(job, values);
}

int idbg_header() { return HEADER; }
}
