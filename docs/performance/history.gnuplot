# What history costs: gnuplot docs/performance/history.gnuplot, from history.csv, which make bench-history leaves
set terminal svg size 1180,540 font "Helvetica,12" background "white"
set output "docs/performance/history.svg"
chosen(what, buffers, durable) = "< awk -F, -v OFS=' ' '$8 == \"" . what . "\" && $6 == \"" . buffers . \
    "\" && $7 == \"" . durable . "\" {print $1, $11 / $9, $12 / $10, $11 / 1000, $9 / 1000}' docs/performance/history.csv"
set multiplot layout 1,2
set grid
set key bmargin horizontal maxcols 3 samplen 1.5 width -6 font ",9"
set logscale x
set xtics ("1 d" 1, "10 d" 10, "36 d" 36, "120 d" 120, "1 y" 365)
set xrange [0.8:450]
set xlabel "history at 30 000 orders a day"
set title "medians beside an empty database, 512 MB of buffers"
set yrange [0:2]
statements = "'queue a job' 'heads of the queue' 'claim' 'note a broadcast' 'transactions in flight' 'record a receipt' " . \
    "'end a job' 'report' 'rows of a job' 'apply a block of 20 orders'"
plot for [s in statements] chosen(s, "512MB", "false") using 1:2 with linespoints pointtype 7 pointsize 0.5 \
         linewidth (s eq "apply a block of 20 orders" ? 3 : 1) title s, \
     1.2 with lines dashtype 2 linecolor "gray40" title "goal"
set key maxcols 3 width 1
set title "a block of 20 orders, ms"
set yrange [0:*]
block = "apply a block of 20 orders"
plot chosen(block, "512MB", "false") using 1:4 with linespoints linewidth 2 pointtype 7 title "512 MB", \
     chosen(block, "512MB", "false") using 1:5 with linespoints dashtype 2 pointtype 6 title "empty", \
     chosen(block, "128MB", "false") using 1:4 with linespoints linewidth 2 pointtype 7 title "128 MB", \
     chosen(block, "128MB", "false") using 1:5 with linespoints dashtype 2 pointtype 6 title "empty", \
     chosen(block, "512MB", "true") using 1:4 with points pointtype 5 pointsize 1.2 title "512 MB, durable", \
     chosen(block, "512MB", "true") using 1:5 with points pointtype 4 pointsize 1.2 title "empty"
unset multiplot
