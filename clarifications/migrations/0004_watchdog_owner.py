from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clarifications", "0003_drafts"),
    ]

    operations = [
        migrations.AddField(
            model_name="watchdog",
            name="owner",
            field=models.BigIntegerField(default=0),
        ),
    ]
