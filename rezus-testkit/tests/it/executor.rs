//! The scripted executor keeps the laws of its port.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::runs::executor::{Job, TofuExecutor};
use rezus_testkit::contract::executor::ExecutorFixture;
use rezus_testkit::fake::{Script, ScriptedExecutor};

struct Scripted(ScriptedExecutor);

#[async_trait]
impl ExecutorFixture for Scripted {
    fn executor(&self) -> Arc<dyn TofuExecutor> {
        Arc::new(self.0.clone())
    }

    fn play(&self, job: Job, script: &Script) -> Job {
        self.0.set_script(Some(&job.id.tenant), job.stage, script.clone());
        job
    }

    async fn open_gate(&self, gate: &str) {
        self.0.open_gate(gate);
    }
}

rezus_testkit::executor_contract!(Scripted(ScriptedExecutor::new()));
