package heddle_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/connector"
)

// docs/go-jobs.md lists the methods of the types that go doc shows without any: all of them.
func TestGuideListsMethods(t *testing.T) {
	guide, err := os.ReadFile("docs/go-jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*heddle.Value[int]](), reflect.TypeFor[*heddle.List[int]](), reflect.TypeFor[*heddle.MapState[int, int]](),
		reflect.TypeFor[*heddle.SharedMap[int, int]](), reflect.TypeFor[*heddle.ProcessContext[int, int]](), reflect.TypeFor[heddle.Env](),
		reflect.TypeFor[heddle.Func[int, int]](), reflect.TypeFor[heddle.Source[int]](), reflect.TypeFor[heddle.Sink[int]](),
		reflect.TypeFor[heddle.MessageSource](), reflect.TypeFor[heddle.MessageSink](), reflect.TypeFor[heddle.Format[int]](),
		reflect.TypeFor[connector.Enumerator](), reflect.TypeFor[connector.Reader[int]](), reflect.TypeFor[connector.SinkWriter[int]](),
		reflect.TypeFor[connector.MessageWriter](), reflect.TypeFor[connector.Finisher](),
	} {
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			if m.IsExported() && !strings.Contains(string(guide), m.Name+"(") {
				t.Errorf("docs/go-jobs.md does not name %s of %s", m.Name, typ)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[heddle.Processor[int, int, int]](), reflect.TypeFor[heddle.CoProcessor[int, int, int, int]](), reflect.TypeFor[heddle.Windowed[int, int]]()} {
		for i := range typ.NumField() {
			if f := typ.Field(i); !strings.Contains(string(guide), "`"+f.Name+"`") {
				t.Errorf("docs/go-jobs.md does not name field %s of %s", f.Name, typ)
			}
		}
	}
}
