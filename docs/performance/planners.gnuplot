# What positions cost: gnuplot docs/performance/planners.gnuplot
# planners.csv is what make bench-planners leaves.
# ticks.txt: go test -run '^$' -bench OrdinaryTick -benchtime 4000x ./pkg/risk/liquidation
set terminal svg size 1080,400 font "Helvetica,12" background "white"
set datafile separator ","
set output "docs/performance/planners.svg"
raw = "docs/performance/planners.csv"
set multiplot layout 1,3
set grid
set key bmargin horizontal maxcols 2 samplen 2
set logscale x
set xlabel "open positions, in four planners"
set format x "10^{%L}"
set xrange [7000:14000000]
set yrange [0:*]
set title "to load all, s"
plot raw every ::1 using 1:3 with linespoints linewidth 2 pointtype 7 title "until all four have", \
     raw every ::1 using 1:6 with linespoints linewidth 2 pointtype 6 title "of the processor, all four"
set title "memory of one planner, MB"
set yrange [0:1100]
plot raw every ::1 using 1:4 with linespoints linewidth 2 pointtype 7 title "most ever", \
     raw every ::1 using 1:5 with linespoints linewidth 2 pointtype 6 title "loaded", \
     1024 with lines dashtype 2 linecolor "gray40" title "goal"
set xlabel "open positions, in one index"
set yrange [0:*]
set title "an ordinary tick of one price, µs"
ticks = "< sed -n 's,^BenchmarkOrdinaryTick/\\([0-9]*\\)-.*[^0-9.]\\([0-9.]*\\) p50.*,\\1 \\2,p' docs/performance/ticks.txt"
set datafile separator whitespace
plot ticks using 1:2 with linespoints linewidth 2 pointtype 7 title "half of them within"
unset multiplot
