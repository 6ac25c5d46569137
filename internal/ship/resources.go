package ship

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/yarnclient"
)

// resource is the form of a resource in the environment of a master.
type resource struct {
	Name       string                `json:"n"`
	URI        string                `json:"u"`
	Archive    bool                  `json:"a,omitempty"`
	Visibility yarnclient.Visibility `json:"v"`
	Size       int64                 `json:"s"`
	Modified   int64                 `json:"t"` // milliseconds
}

// EncodeResources writes resources as one word for a variable of the environment: the master names the same ones to its agents' NodeManagers.
func EncodeResources(rs []yarnclient.LocalResource) string {
	var list []resource
	for _, r := range rs {
		list = append(list, resource{r.Name, r.URI, r.Archive, r.Visibility, r.Size, r.Modified.UnixMilli()})
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err) // there is nothing in it that has no JSON
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// DecodeResources reads what EncodeResources wrote.
func DecodeResources(s string) ([]yarnclient.LocalResource, error) {
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of resources: %w", err)
	}
	var list []resource
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("cannot read the list of resources: %w", err)
	}
	var out []yarnclient.LocalResource
	for _, r := range list {
		out = append(out, yarnclient.LocalResource{Name: r.Name, URI: r.URI, Archive: r.Archive, Visibility: r.Visibility, Size: r.Size, Modified: time.UnixMilli(r.Modified)})
	}
	return out, nil
}
