package recordings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"perpkeeper/pkg/perp"
)

// requestArray names the array of a kind of request in the dump.
func requestArray(k perp.RequestKind) string { return string(k) + "s" }

var tableArrays = map[perp.Table]string{
	perp.Positions: "positions", perp.Orders: "orders", perp.Markets: "markets", perp.MarketValues: "marketValues",
	perp.Parameters: "parameters", perp.OracleSources: "oracleSources", perp.BadDebts: "badDebts",
	perp.Settlements: "settlements", perp.KeeperFees: "keeperFees",
}

// dump writes every entity of a book as JSON, the finished ones included: one array per kind, ordered by key, numbers
// as decimal text. Two books with equal rows give equal bytes. What the rules said is not of the recording and left
// out.
func dump(book *perp.Book, seen extent, said *rules) ([]byte, error) {
	document := map[string]any{}
	for table, name := range tableArrays {
		rows := book.Rows(table)
		entities := make([]any, 0, len(rows))
		for _, row := range rows {
			if !said.set[row.RowKey()] {
				entities = append(entities, row)
			}
		}
		document[name] = entities
	}
	requests := map[string][]any{}
	for _, row := range book.Rows(perp.Requests) {
		if request, ok := row.(perp.Request); ok {
			name := requestArray(request.Kind)
			requests[name] = append(requests[name], requestEntity(request))
		}
	}
	for _, kind := range perp.RequestKinds() {
		name := requestArray(kind)
		document[name] = append([]any{}, requests[name]...)
	}
	document["recording"] = seen
	plain, err := plainJSON(document)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(plain, "", " ")
	return append(text, '\n'), err
}

// requestEntity lays what became of a request beside the items of its Created event.
func requestEntity(r perp.Request) map[string]any {
	entity := map[string]any{"status": r.Status, "birth": r.Birth, "stamp": r.Stamp}
	maps.Copy(entity, r.Fields)
	if r.Status == perp.Cancelled {
		entity["reason"], entity["reasonBytes"] = r.Reason, r.ReasonBytes
	}
	return entity
}

// encoded is a value as it is printed.
func encoded(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	err := encoder.Encode(v)
	return text.Bytes(), err
}

// plainJSON turns a value into maps, slices and texts, with every number as its decimal text.
func plainJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	return numbersAsText(plain), nil
}

func numbersAsText(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case []any:
		for i := range v {
			v[i] = numbersAsText(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbersAsText(v[name])
		}
	}
	return value
}

// deliver writes text to a file, whole or not at all, or to standard output when no file is named.
func deliver(text []byte, file string, stdout io.Writer) error {
	if file == "" {
		_, err := stdout.Write(text)
		return err
	}
	if err := writeWhole(text, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

func writeWhole(text []byte, file string) (err error) {
	draft, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(draft.Name()))
		}
	}()
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Chmod(0o644), draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), file)
}
