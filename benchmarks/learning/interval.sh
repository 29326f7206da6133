# What the learning proofs print of their seeds; each script here reads it with `.`.

# student DIGITS < NUMBERS: how many, their mean, half the width of its 95 % interval (Student's t), and the numbers. Fails without one.
student() {
  awk -v form="%.$1f" '
    BEGIN { split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ") }
    { n++; sum += $1; square += $1 * $1; all = all sprintf(" " form, $1) }
    END { if (n == 0) exit 1
      mean = sum / n; v = n > 1 ? (square - n * mean * mean) / (n - 1) : 0
      half = n > 1 ? (n - 1 in t ? t[n - 1] : 1.96) * sqrt(v > 0 ? v / n : 0) : 0
      printf "%d " form " " form "%s\n", n, mean, half, all }'
}

# interval NAME WIDTH DIGITS < NUMBERS: a line of a table
interval() {
  local line n mean half all
  line=$(student "$3") || return
  read -r n mean half all <<<"$line"
  printf "%-$2s %6d  %s +- %s  ( %s )\n" "$1" "$n" "$mean" "$half" "$all"
}

# mean_and_interval < NUMBERS: "0.812 +- 0.031 (5 seeds)"
mean_and_interval() {
  local line n mean half
  line=$(student 3) || return
  read -r n mean half _ <<<"$line"
  echo "$mean +- $half ($n seeds)"
}
