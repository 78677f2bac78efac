# What a soak's processes, topics and tables took: gnuplot docs/performance/soak.gnuplot
set terminal svg size 1080,440 font "Helvetica,12" background "white"
set datafile separator ","
set output "docs/performance/soak.svg"
raw = "docs/performance/soak.csv"
of(kind, name, measure) = sprintf("< grep ',%s,%s,%s,' %s", kind, name, measure, raw)
set multiplot layout 1,3
set grid
set key bmargin horizontal maxcols 2 samplen 2
set xlabel "hours of the chain"
set yrange [0:*]
set title "resident memory, MB"
plot for [p in "scanner statevm planner sender console"] of("process", p, "resident_bytes") using ($1/3600):($5/1048576) \
     with lines linewidth 2 title p, \
     of("process", "postgres", "private_bytes") using ($1/3600):($5/1048576) with lines title "postgres (private)"
set title "topics, MB"
plot for [p in "log price job result"] of("topic", p, "bytes") using ($1/3600):($5/1048576) with lines linewidth 2 title p
set title "tables with indexes, MB"
plot for [p in "keeper.tx_intent keeper.signed_tx state_g1.perp_order state_g1.undo state_g1.kept_block"] \
     of("table", p, "bytes") using ($1/3600):($5/1048576) with lines linewidth 2 title p noenhanced
unset multiplot
