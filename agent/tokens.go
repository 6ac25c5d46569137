package agent

import "github.com/heddle-stream/heddle/internal/ctl/ctlpb"

// renew takes fresh tokens for services outside. Those that can't be used leave the old ones in place, which the master sees by their version.
func (a *agent) renew(t *ctlpb.Tokens) {
	if a.cfg.Tokens == nil {
		a.cfg.Logger.Warn("the ApplicationMaster sent tokens, for which this agent has no use")
		return
	}
	if err := a.cfg.Tokens(t.GetCredentials()); err != nil {
		a.cfg.Logger.Error("cannot use the fresh tokens of the ApplicationMaster", "version", t.GetVersion(), "err", err)
		return
	}
	a.tokens = t.GetVersion()
	a.cfg.Logger.Info("took fresh tokens", "version", t.GetVersion())
}
