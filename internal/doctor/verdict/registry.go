package verdict

import (
	"strings"

	"github.com/heddle-stream/heddle/schemaregistry"
)

// Subject is one whose schemas a job needs.
type Subject struct {
	Name    string
	Write   bool // the job registers its schema there
	Guessed bool // by the name of a topic: its records may say another
}

// Registry judges what a schema registry said. err is why it could not be asked at all.
func Registry(urls []string, subjects []Subject, answers []schemaregistry.Answer, err error) Verdict {
	if err != nil {
		return fail("registry-options", "see schema-registry.* in `heddle config`", "%v", err)
	}
	at := strings.Join(urls, ", ")
	var vs []Verdict
	var there []string
	for i, a := range answers {
		if a.Trouble == schemaregistry.Fine {
			there = append(there, a.Subject)
			continue
		}
		var s Subject
		if i < len(subjects) {
			s = subjects[i]
		}
		vs = append(vs, registryTrouble(at, s, a))
	}
	if len(answers) == 1 && len(subjects) == 0 && len(vs) == 0 {
		return pass("%s answers", at)
	}
	if len(there) > 0 {
		vs = append(vs, pass("%s has schemas of %s", at, strings.Join(there, ", ")))
	}
	return All(vs)
}

func registryTrouble(at string, s Subject, a schemaregistry.Answer) Verdict {
	switch a.Trouble {
	case schemaregistry.Unreachable:
		return fail("registry-unreachable", "check schema-registry.urls, that the registry runs, and that its port can be reached from here", "%v", a.Err)
	case schemaregistry.Untrusted:
		return fail("registry-tls", "set schema-registry.ca-file to the certificate of the authority of the registry's, and check that its URL begins as it listens, with https or http", "%s: %v", at, a.Err)
	case schemaregistry.Unknown:
		return fail("registry-login", "check schema-registry.user and its password, the token, or schema-registry.kerberos.enabled", "%s does not take us for anybody: %v", at, a.Err)
	case schemaregistry.NoTicket:
		return fail("registry-kerberos", "see schema-registry.kerberos.* in `heddle config`; the service is HTTP/ with the host's name of the URL", "%s: %v", at, a.Err)
	case schemaregistry.Denied:
		return fail("subject-denied", "ask for it: heddle plan --grants lists the subjects", "we may not read schemas of %s: %v", orThe(s.Name), a.Err)
	case schemaregistry.Missing:
		return subjectMissing(s, a)
	}
	return fail("registry-strange", "check that schema-registry.urls and schema-registry.kind name the registry, and no other service", "%s: %v", at, a.Err)
}

func subjectMissing(s Subject, a schemaregistry.Answer) Verdict {
	switch {
	case s.Name == "":
		return fail("registry-strange", "check that schema-registry.urls and schema-registry.kind name the registry, and no other service", "%v", a.Err)
	case s.Write:
		return pass("subject %s is new: the job registers its schema", s.Name)
	case s.Guessed:
		return warn("subject-missing", "check that the topic's records were written with a schema of this registry; under which subject, does not matter to read them", "there are no schemas of %s", s.Name)
	}
	return fail("subject-missing", "have the schema registered, or name another subject in the job", "there are no schemas of %s, by which the job is to write", s.Name)
}

func orThe(name string) string {
	if name == "" {
		return "the registry"
	}
	return name
}
