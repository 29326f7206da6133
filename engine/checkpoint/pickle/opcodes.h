// The opcodes of Python pickles, protocols 2 to 5 (CPython: Lib/pickle.py), without those of
// protocols 0 and 1 that later ones do not write.
#pragma once

#include <cstdint>

namespace troupe::engine::checkpoint::op {

inline constexpr std::uint8_t mark = '(', stop = '.', pop = '0', pop_mark = '1', dup = '2',
                              none = 'N', new_true = 0x88, new_false = 0x89;
inline constexpr std::uint8_t bin_int = 'J', bin_int1 = 'K', bin_int2 = 'M', long1 = 0x8a,
                              long4 = 0x8b, bin_float = 'G';
inline constexpr std::uint8_t bin_string = 'T', short_bin_string = 'U', bin_unicode = 'X',
                              short_bin_unicode = 0x8c, bin_unicode8 = 0x8d, bin_bytes = 'B',
                              short_bin_bytes = 'C', bin_bytes8 = 0x8e, bytearray8 = 0x96;
inline constexpr std::uint8_t empty_dict = '}', empty_list = ']', empty_tuple = ')',
                              empty_set = 0x8f, tuple = 't', tuple1 = 0x85, tuple3 = 0x87,
                              frozenset = 0x91;
inline constexpr std::uint8_t append = 'a', appends = 'e', set_item = 's', set_items = 'u',
                              add_items = 0x90;
inline constexpr std::uint8_t bin_put = 'q', long_bin_put = 'r', bin_get = 'h', long_bin_get = 'j',
                              memoize = 0x94;
inline constexpr std::uint8_t global = 'c', stack_global = 0x93, reduce = 'R', build = 'b',
                              new_obj = 0x81, new_obj_ex = 0x92, bin_pers_id = 'Q';
inline constexpr std::uint8_t proto = 0x80, frame = 0x95;

}  // namespace troupe::engine::checkpoint::op
