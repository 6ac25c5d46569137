package schemaregistry

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
)

// clouderaSchemas is where Cloudera's registry has its schemas.
const clouderaSchemas = "/api/v1/schemaregistry/schemas"

// clouderaVersion is a version of a schema in the notation of Cloudera's registry.
type clouderaVersion struct {
	ID      int64  `json:"id,omitempty"`
	Version int    `json:"version,omitempty"`
	Text    string `json:"schemaText"`
}

func (v *clouderaVersion) schema() *schema { return &schema{id: v.ID, text: v.Text, kind: "AVRO"} }

// registerCloudera makes sure that a schema of that name has a version with the text, and returns the version's id.
func (c *client) registerCloudera(ctx context.Context, name, text string) (int64, error) {
	about, err := json.Marshal(map[string]any{"type": "avro", "schemaGroup": "Kafka", "name": name, "description": name, "compatibility": "BACKWARD",
		"validationLevel": "ALL", "evolve": true})
	if err != nil {
		return 0, err
	}
	var ignored any
	if err := c.ask(ctx, http.MethodPost, clouderaSchemas, about, &ignored); err != nil {
		if _, there := errors.AsType[*conflictError](err); !there {
			return 0, err
		}
	}
	body, err := json.Marshal(map[string]any{"schemaText": text, "description": "by Heddle"})
	if err != nil {
		return 0, err
	}
	var version int
	path := clouderaSchemas + "/" + url.PathEscape(name) + "/versions"
	if err := c.ask(ctx, http.MethodPost, path, body, &version); err != nil {
		return 0, err
	}
	var v clouderaVersion
	err = c.ask(ctx, http.MethodGet, path+"/"+strconv.Itoa(version), nil, &v)
	return v.ID, err
}

// existingCloudera finds the version of a schema whose text is the same but for its layout.
func (c *client) existingCloudera(ctx context.Context, name string, same func(text string) bool) (int64, error) {
	var all struct {
		Entities []clouderaVersion `json:"entities"`
	}
	if err := c.ask(ctx, http.MethodGet, clouderaSchemas+"/"+url.PathEscape(name)+"/versions", nil, &all); err != nil {
		return 0, err
	}
	for _, v := range all.Entities {
		if same(v.Text) {
			return v.ID, nil
		}
	}
	return 0, fmt.Errorf("none of its %d versions is this schema", len(all.Entities))
}

// latestCloudera returns the newest version of a schema.
func (c *client) latestCloudera(ctx context.Context, name string) (*schema, error) {
	var v clouderaVersion
	if err := c.ask(ctx, http.MethodGet, clouderaSchemas+"/"+url.PathEscape(name)+"/versions/latest", nil, &v); err != nil {
		return nil, err
	}
	return v.schema(), nil
}

// appendClouderaFrame appends the frame of Cloudera's registry: its protocol 3, or 2 where the id needs it.
func appendClouderaFrame(b []byte, id int64) []byte {
	if id <= math.MaxInt32 {
		return binary.BigEndian.AppendUint32(append(b, 3), uint32(id))
	}
	return binary.BigEndian.AppendUint64(append(b, 2), uint64(id))
}
