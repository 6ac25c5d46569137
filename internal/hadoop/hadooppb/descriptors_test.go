package hadooppb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// hadoop collects the messages and enums of Hadoop 3.4's own descriptors (testdata, taken from the generated classes in its jars), by
// their names without the package. Nested ones are Outer.Inner.
type hadoop struct {
	messages map[string]*descriptorpb.DescriptorProto
	enums    map[string]*descriptorpb.EnumDescriptorProto
}

func load(t *testing.T) hadoop {
	t.Helper()
	h := hadoop{map[string]*descriptorpb.DescriptorProto{}, map[string]*descriptorpb.EnumDescriptorProto{}}
	paths, err := filepath.Glob("testdata/*.pb")
	if err != nil || len(paths) != 11 {
		t.Fatalf("found %d descriptor files (%v), want 11", len(paths), err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var fd descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(data, &fd); err != nil {
			t.Fatalf("cannot read %s: %v", p, err)
		}
		h.add("", fd.MessageType, fd.EnumType)
	}
	return h
}

func (h hadoop) add(prefix string, ms []*descriptorpb.DescriptorProto, es []*descriptorpb.EnumDescriptorProto) {
	for _, e := range es {
		h.enums[prefix+e.GetName()] = e
	}
	for _, m := range ms {
		h.messages[prefix+m.GetName()] = m
		h.add(prefix+m.GetName()+".", m.NestedType, m.EnumType)
	}
}

// TestDescriptors compares every message, field and enum value with Hadoop's.
func TestDescriptors(t *testing.T) {
	h := load(t)
	n := 0
	for _, f := range []protoreflect.FileDescriptor{File_hadoop_common_proto, File_hadoop_hdfs_proto, File_hadoop_yarn_proto, File_hadoop_access_proto} {
		fd := protodesc.ToFileDescriptorProto(f)
		ours := hadoop{map[string]*descriptorpb.DescriptorProto{}, map[string]*descriptorpb.EnumDescriptorProto{}}
		ours.add("", fd.MessageType, fd.EnumType)
		for name, m := range ours.messages {
			n++
			compareMessage(t, name, m, h.messages[name])
		}
		for name, e := range ours.enums {
			compareEnum(t, name, e, h.enums[name])
		}
	}
	if n < 100 {
		t.Errorf("compared %d messages, want over 100", n)
	}
}

func compareMessage(t *testing.T, name string, got, want *descriptorpb.DescriptorProto) {
	if want == nil {
		t.Errorf("Hadoop has no message %s", name)
		return
	}
	theirs := map[string]*descriptorpb.FieldDescriptorProto{}
	for _, f := range want.Field {
		theirs[f.GetName()] = f
	}
	ours := map[string]bool{}
	for _, f := range got.Field {
		ours[f.GetName()] = true
		w := theirs[f.GetName()]
		if w == nil {
			t.Errorf("Hadoop's %s has no field %s", name, f.GetName())
		} else if a, b := essence(f), essence(w); a != b {
			t.Errorf("%s.%s: got %s, want %s", name, f.GetName(), a, b)
		}
	}
	for _, f := range want.Field {
		if !ours[f.GetName()] && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REQUIRED {
			t.Errorf("%s lacks the required field %s", name, f.GetName())
		}
	}
}

// essence is what matters of a field, as text. Packages differ on purpose.
func essence(f *descriptorpb.FieldDescriptorProto) string {
	typ := f.GetTypeName()
	for _, p := range []string{".heddle.hadoop.", ".hadoop.common.", ".hadoop.hdfs.", ".hadoop.yarn."} {
		typ = strings.TrimPrefix(typ, p)
	}
	e := &descriptorpb.FieldDescriptorProto{Number: f.Number, Label: f.Label, Type: f.Type, TypeName: &typ}
	if f.DefaultValue != nil && f.GetDefaultValue() != "" {
		e.DefaultValue = f.DefaultValue
	}
	return prototext.MarshalOptions{}.Format(e)
}

func compareEnum(t *testing.T, name string, got, want *descriptorpb.EnumDescriptorProto) {
	if want == nil {
		t.Errorf("Hadoop has no enum %s", name)
		return
	}
	theirs := map[string]int32{}
	for _, v := range want.Value {
		theirs[v.GetName()] = v.GetNumber()
	}
	for _, v := range got.Value {
		if n, ok := theirs[v.GetName()]; !ok || n != v.GetNumber() {
			t.Errorf("%s.%s = %d, want %d (known: %v)", name, v.GetName(), v.GetNumber(), n, ok)
		}
	}
}
