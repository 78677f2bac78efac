# The picture of a thousand liquidations: gnuplot docs/performance/drain.gnuplot
set terminal svg size 900,480 font "Helvetica,13" background "white"
set datafile separator ","
set output "docs/performance/drain.svg"
set xlabel "seconds after the jump"
set ylabel "liquidations landed"
set xrange [0:60]
set yrange [0:1050]
set grid
set key right bottom
# 55 million gas a block, 2.4 million a liquidation and 0.45 s a block: 22 of them fit into one.
limit(x) = x <= 20.5 ? 1000 * x / 20.5 : NaN
raw(name) = "docs/performance/drain-" . name . ".csv"
set arrow from 35,0 to 35,1050 nohead dashtype 2 linecolor "gray40"
set label "goal" at 35.4,40 textcolor "gray40"
plot limit(x) with lines dashtype 3 linecolor "black" title "the chain's own limit", \
     raw("plain") every ::1 using 2:4 with steps linewidth 2 title "plain", \
     raw("orders-beside") every ::1 using 2:4 with steps linewidth 2 title "orders beside", \
     raw("orders-beside-with-signers-of-their-own") every ::1 using 2:4 with steps title "orders beside, signers of their own", \
     raw("gas-price-x50") every ::1 using 2:4 with steps title "gas price x50", \
     raw("finality-stalls") every ::1 using 2:4 with steps linewidth 2 title "finality stalls", \
     raw("before") every ::1 using 2:4 with lines linewidth 2 linecolor "gray60" title "before (162 s in all)"
