package service

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is one row of a metrics catalogue.
type Metric struct {
	Name   string
	Type   string // counter, gauge, histogram, summary; unknown for a collector that says nothing before it runs
	Labels []string
	Help   string
}

// Catalogue lists what register registers, in alphabetical order, vectors without children included. Nothing is run.
func Catalogue(register func(prometheus.Registerer)) ([]Metric, error) {
	c := &cataloguer{types: prometheus.NewPedanticRegistry(), rows: map[string]Metric{}}
	register(c)
	if c.err != nil {
		return nil, fmt.Errorf("listing metrics: %w", c.err)
	}
	families, err := c.types.Gather()
	if err != nil {
		return nil, fmt.Errorf("listing metrics: %w", err)
	}
	for _, family := range families {
		row := c.rows[family.GetName()]
		row.Type = strings.ToLower(family.GetType().String())
		c.rows[family.GetName()] = row
	}
	var all []Metric
	for _, row := range c.rows {
		row.Type = cmp.Or(row.Type, "unknown")
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// WriteCatalogue prints the rows of a markdown table: name, type, labels, help.
func WriteCatalogue(w io.Writer, metrics []Metric) error {
	for _, m := range metrics {
		help := strings.ReplaceAll(strings.ReplaceAll(m.Help, "\n", " "), "|", `\|`)
		if _, err := fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "),
			help); err != nil {
			return err
		}
	}
	return nil
}

// cataloguer is a Registerer that writes down what it is given. Collectors that have something to collect at once are
// also registered for real, because only a gathered family shows its type.
type cataloguer struct {
	types *prometheus.Registry
	rows  map[string]Metric
	err   error
}

// Register implements prometheus.Registerer.
func (c *cataloguer) Register(collector prometheus.Collector) error {
	if err := c.types.Register(collector); err != nil {
		return err
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		collector.Describe(descs)
	}()
	for desc := range descs {
		row, err := describe(desc)
		if err != nil {
			c.err = cmp.Or(c.err, err)
			continue
		}
		row.Type = vectorType(collector)
		c.rows[row.Name] = row
	}
	return nil
}

// MustRegister implements prometheus.Registerer. It does not panic: Catalogue returns the first error.
func (c *cataloguer) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		c.err = cmp.Or(c.err, c.Register(collector))
	}
}

// Unregister implements prometheus.Registerer. What was registered once stays in the catalogue.
func (c *cataloguer) Unregister(collector prometheus.Collector) bool {
	return c.types.Unregister(collector)
}

// vectorType names the type of vectors, which show no family before their first child exists.
func vectorType(collector prometheus.Collector) string {
	switch collector.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	default:
		return ""
	}
}

// A Desc's only public form is its String.
var (
	descRule = regexp.MustCompile(
		`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{(.*)\}, variableLabels: \{([^}]*)\}\}$`)
	constRule = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

func describe(desc *prometheus.Desc) (Metric, error) {
	parts := descRule.FindStringSubmatch(desc.String())
	if parts == nil {
		return Metric{}, fmt.Errorf("%s cannot be read", desc)
	}
	name, nameErr := strconv.Unquote(parts[1])
	help, helpErr := strconv.Unquote(parts[2])
	if err := cmp.Or(nameErr, helpErr); err != nil {
		return Metric{}, fmt.Errorf("%s cannot be read: %w", desc, err)
	}
	var labels []string
	for _, constant := range constRule.FindAllStringSubmatch(parts[3], -1) {
		labels = append(labels, constant[1])
	}
	labels = append(labels, strings.FieldsFunc(parts[4], func(r rune) bool { return r == ',' })...)
	return Metric{Name: name, Help: help, Labels: labels}, nil
}

// registerBuild publishes what is running, as a gauge that is always 1.
func registerBuild(reg prometheus.Registerer, b Build) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "perpkeeper_build_info",
		Help:        "Always 1; the labels say which program is running.",
		ConstLabels: prometheus.Labels{"service": b.Service, "version": b.Version, "revision": b.Revision, "go": b.Go},
	}, func() float64 { return 1 }))
}
